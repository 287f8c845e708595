package zkserver

import (
	"maps"
	"slices"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// tree is the data tree: all znodes by their path, the ephemerals by their
// session, the containers and TTL nodes, and the paths that have a quota.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{}
	reapable   map[string]struct{}
	quotas     map[string]struct{}
}

// newTree is what a server that never ran before has.
func newTree() *tree {
	t := &tree{
		nodes:      map[string]*node{},
		ephemerals: map[int64]map[string]struct{}{},
		reapable:   map[string]struct{}{},
		quotas:     map[string]struct{}{},
	}
	root := &node{path: "/", data: []byte{}, rights: &jute.OpenACL}
	t.nodes["/"] = root
	t.nodes[""] = root
	for _, path := range []string{"/zookeeper", "/zookeeper/config", "/zookeeper/quota"} {
		t.insert(path, &node{data: []byte{}, rights: &jute.OpenACL})
	}
	config := t.nodes["/zookeeper/config"]
	config.rights = &[]ACL{{Perms: jute.PermRead, Scheme: "world", ID: "anyone"}}
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

// size counts the root twice, as a real server does.
func (t *tree) size() int { return len(t.nodes) }

// dataSize is the length of all paths and data.
func (t *tree) dataSize() int {
	n := 0
	for path, node := range t.nodes {
		n += len(path) + len(node.data)
	}
	return n
}

// insert puts n at path, whose parent must exist.
func (t *tree) insert(path string, n *node) {
	parent, _, _ := splitPath(path)
	n.path = path
	t.nodes[path] = n
	t.nodes[parent].addChild(n)
	if subject := quotaFor(path, limitsName); subject != "" {
		t.quotas[subject] = struct{}{}
	}
	if n.isReapable() {
		t.reapable[path] = struct{}{}
	}
	if n.isEphemeral() {
		paths := t.ephemerals[n.owner]
		if paths == nil {
			paths = map[string]struct{}{}
			t.ephemerals[n.owner] = paths
		}
		paths[path] = struct{}{}
	}
}

// Intern returns the path of a znode, which is the key of the tree.
func (t *tree) Intern(path []byte) (string, bool) {
	if n := t.nodes[string(path)]; n != nil && len(n.path) == len(path) {
		return n.path, true
	}
	return "", false
}

// remove takes the node at path out.
func (t *tree) remove(path string, n *node) {
	delete(t.nodes, path)
	n.parent.removeChild(n)
	delete(t.reapable, path)
	if subject := quotaFor(path, limitsName); subject != "" {
		delete(t.quotas, subject)
	}
	if n.isEphemeral() {
		paths := t.ephemerals[n.owner]
		delete(paths, path)
		if len(paths) == 0 {
			delete(t.ephemerals, n.owner)
		}
	}
}

// ephemeralsOf lists in a defined order, so that runs can be repeated.
func (t *tree) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemerals[session]))
}

// snapshot is the tree as it is now, for those who are to go on seeing it.
func (t *tree) snapshot() *tree {
	c := &tree{nodes: make(map[string]*node, len(t.nodes)), ephemerals: map[int64]map[string]struct{}{}}
	for session, paths := range t.ephemerals {
		c.ephemerals[session] = maps.Clone(paths)
	}
	copies := make(map[*node]*node, len(t.nodes))
	for path, n := range t.nodes {
		m := copies[n]
		if m == nil {
			m = new(node)
			*m = *n
			copies[n] = m
		}
		c.nodes[path] = m
	}
	for _, m := range copies {
		m.parent = copies[m.parent]
		if m.kids != nil {
			kids := make([]*node, len(*m.kids))
			for i, child := range *m.kids {
				kids[i] = copies[child]
			}
			m.kids = &kids
		}
	}
	return c
}
