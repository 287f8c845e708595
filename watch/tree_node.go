package watch

// A treeNode is the mirror's state of a znode. The mirror's goroutine alone changes
// it.
type treeNode struct {
	path   string
	name   string
	parent *treeNode
	sides  [2]treeSide // by sideKind
	read   bool        // state was read, or refused, perhaps in an earlier session
	listed uint64      // the listing of the parent that has named the znode last

	// Changed under the view's mu, so that others may read them under it:
	children map[string]*treeNode
	state    State
	failure  error // why something about the znode cannot be read
	visible  bool  // in the view: read, as is everything above
}

// A treeSide is a side of a treeNode.
type treeSide struct {
	side
	node  *treeNode
	epoch uint64 // while asked
}

func newTreeNode(parent *treeNode, path, name string) *treeNode {
	n := &treeNode{path: path, name: name, parent: parent}
	for kind := range n.sides {
		n.sides[kind] = treeSide{node: n, side: side{kind: sideKind(kind)}}
	}
	return n
}

// child returns a new node for a child, which n does not have yet.
func (n *treeNode) child(name string) *treeNode {
	path := n.path + "/" + name
	if n.path == "/" {
		path = "/" + name
	}
	return newTreeNode(n, path, path[len(path)-len(name):])
}

// refusal returns why a side is refused, or nil.
func (n *treeNode) refusal() error {
	for kind := range n.sides {
		if sd := &n.sides[kind]; sd.state == refused {
			return sd.side.refusal
		}
	}
	return nil
}
