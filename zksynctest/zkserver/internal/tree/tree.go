package tree

import (
	"iter"
	"maps"
	"slices"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Tree is the data tree: all znodes by their path, the ephemerals by their
// session, the containers and TTL nodes, and the paths that have a quota.
type Tree struct {
	nodes      map[string]*Node
	ephemerals map[int64]map[string]struct{}
	reapable   map[string]struct{}
	quotas     map[string]struct{}
	acls       aclTable
}

// NewTree returns the tree of a server that never ran before.
func NewTree() *Tree {
	t := &Tree{
		nodes:      map[string]*Node{},
		ephemerals: map[int64]map[string]struct{}{},
		reapable:   map[string]struct{}{},
		quotas:     map[string]struct{}{},
	}
	root := &Node{Path: "/", Data: []byte{}, Rights: &jute.OpenACL}
	t.nodes["/"] = root
	t.nodes[""] = root
	for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		t.insert(path, &Node{Data: []byte{}, Rights: &jute.OpenACL})
	}
	config := t.nodes["/zookeeper/config"]
	config.Rights = &[]jute.ACL{{Perms: jute.PermRead, Scheme: "world", ID: "anyone"}}
	config.aversion = -1
	return t
}

// reserved paths cannot be deleted.
func reserved(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota":
		return true
	}
	return false
}

// Size counts the root twice, as a real server does.
func (t *Tree) Size() int { return len(t.nodes) }

// DataSize is the length of all paths and data.
func (t *Tree) DataSize() int {
	n := 0
	for path, node := range t.nodes {
		n += len(path) + len(node.Data)
	}
	return n
}

// insert puts n at path, whose parent must exist.
func (t *Tree) insert(path string, n *Node) {
	parent, _, _ := splitPath(path)
	n.Path = path
	t.nodes[path] = n
	t.nodes[parent].addChild(n)
	if subject := quotaFor(path, limitsName); subject != "" {
		t.quotas[subject] = struct{}{}
	}
	if n.isReapable() {
		t.reapable[path] = struct{}{}
	}
	if n.isEphemeral() {
		paths := t.ephemerals[n.Owner]
		if paths == nil {
			paths = map[string]struct{}{}
			t.ephemerals[n.Owner] = paths
		}
		paths[path] = struct{}{}
	}
}

// Intern returns the path of a znode, which is the key of the tree.
func (t *Tree) Intern(path []byte) (string, bool) {
	if n := t.nodes[string(path)]; n != nil && len(n.Path) == len(path) {
		return n.Path, true
	}
	return "", false
}

// remove takes the node at path out.
func (t *Tree) remove(path string, n *Node) {
	delete(t.nodes, path)
	n.parent.removeChild(n)
	delete(t.reapable, path)
	if subject := quotaFor(path, limitsName); subject != "" {
		delete(t.quotas, subject)
	}
	if n.isEphemeral() {
		paths := t.ephemerals[n.Owner]
		delete(paths, path)
		if len(paths) == 0 {
			delete(t.ephemerals, n.Owner)
		}
	}
}

// Owners are the sessions that have ephemerals, sorted.
func (t *Tree) Owners() []int64 { return slices.Sorted(maps.Keys(t.ephemerals)) }

// EphemeralsOf lists in a defined order, so that runs can be repeated.
func (t *Tree) EphemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// Snapshot returns a copy of the tree that later transactions do not change.
func (t *Tree) Snapshot() *Tree {
	c := &Tree{nodes: make(map[string]*Node, len(t.nodes)), ephemerals: map[int64]map[string]struct{}{}}
	for session, paths := range t.ephemerals {
		c.ephemerals[session] = maps.Clone(paths)
	}
	copies := make(map[*Node]*Node, len(t.nodes))
	for path, n := range t.nodes {
		m := copies[n]
		if m == nil {
			m = new(Node)
			*m = *n
			copies[n] = m
		}
		c.nodes[path] = m
	}
	for _, m := range copies {
		m.parent = copies[m.parent]
		if m.kids != nil {
			kids := make([]*Node, len(*m.kids))
			for i, child := range *m.kids {
				kids[i] = copies[child]
			}
			m.kids = &kids
		}
	}
	return c
}

// All are the znodes, each after its parent.
func (t *Tree) All() iter.Seq[*Node] {
	var walk func(n *Node, yield func(*Node) bool) bool
	walk = func(n *Node, yield func(*Node) bool) bool {
		if !yield(n) {
			return false
		}
		for _, c := range n.Children() {
			if !walk(c, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func(*Node) bool) { walk(t.nodes["/"], yield) }
}

// Node returns the znode at path, or nil. "" is another name of the root.
func (t *Tree) Node(path string) *Node { return t.nodes[path] }
