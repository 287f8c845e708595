package tree

import (
	"slices"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Txn applies the writes of one transaction to the tree. Each write checks
// everything before it changes anything. Its changes are noted in undo when the transaction
// is a multi, and in Events for the watches, which fire when the transaction is committed.
type Txn struct {
	s     *Store
	Zxid  int64
	now   int64 // wall clock in milliseconds, the same for all it creates
	ids   []Identity
	Multi bool

	Events []Change
	Steps  []step            // for the data file
	noted  map[step]struct{} // the steps of a multi
	Ended  int64             // the session that ends with this transaction
	undo   []undo
	Aging  []*Node // containers and TTL nodes that may have to be reaped now or later
	// counters has the sequence counters of parents as the operations of this
	// multi left them: in the tree they stop at the greatest int32, but names
	// within one multi wrap around.
	counters map[*Node]int32
}

// Change is the effect of a write on watches.
type Change struct {
	kind           jute.EventType
	path, parent   string
	acl, parentACL []jute.ACL
}

// undo is the state of a node before a write.
type undo struct {
	path    string
	n       *Node
	before  Node
	created bool // path was not there
	deleted bool // path was there
}

func (t *Txn) save(path string, n *Node, created, deleted bool) {
	if t.Multi {
		t.undo = append(t.undo, undo{path, n, *n, created, deleted})
	}
}

// RollBack takes everything back, the latest first.
func (t *Txn) RollBack() {
	tree := t.s.Tree
	for _, u := range slices.Backward(t.undo) {
		switch {
		case u.created:
			tree.remove(u.path, u.n)
		case u.deleted:
			tree.insert(u.path, u.n)
		default:
			n := u.n
			n.Data, n.Rights = u.before.Data, u.before.Rights
			n.mzxid, n.pzxid, n.mtime = u.before.mzxid, u.before.pzxid, u.before.mtime
			n.version, n.creates, n.aversion = u.before.version, u.before.creates, u.before.aversion
		}
	}
	t.Events, t.Steps, t.Aging, t.noted = t.Events[:0], t.Steps[:0], t.Aging[:0], nil
}

func (t *Txn) Delete(path string, version int32) jute.Code {
	tree := t.s.Tree
	parentPath, _, ok := splitPath(path)
	if !ok || reserved(path) {
		return jute.ErrBadArguments
	}
	parent := tree.nodes[parentPath]
	if parent == nil {
		return jute.ErrNoNode
	}
	if !Allowed(parent.ACL(), jute.PermDelete, t.ids) {
		return jute.ErrNoAuth
	}
	n := tree.nodes[path]
	switch {
	case n == nil:
		return jute.ErrNoNode
	case version != -1 && version != n.version:
		return jute.ErrBadVersion
	case len(n.Children()) > 0:
		return jute.ErrNotEmpty
	}
	t.remove(path, n)
	return jute.OK
}

// RemoveEphemerals deletes the ephemerals of a session.
func (t *Txn) RemoveEphemerals(session int64) {
	for _, path := range t.s.EphemeralsOf(session) {
		t.RemoveNode(path)
	}
}

// RemoveNode deletes a znode that is there and has no children, without checks.
func (t *Txn) RemoveNode(path string) { t.remove(path, t.s.nodes[path]) }

// remove takes out a node that may go.
func (t *Txn) remove(path string, n *Node) {
	parentPath, _, _ := splitPath(path)
	parent := n.parent
	t.save(parentPath, parent, false, false)
	t.s.remove(path, n)
	t.save(path, n, false, true)
	if t.Zxid > parent.pzxid {
		parent.pzxid = t.Zxid
	}
	t.account(path, -1, -len(n.Data))
	t.changed(StepDelete, n)
	t.changed(StepCount, parent)
	if parent.isReapable() {
		t.Aging = append(t.Aging, parent)
	}
	t.Events = append(t.Events, Change{jute.EventDeleted, path, parentPath, n.ACL(), parent.ACL()})
}

// at finds the node of an operation on one existing path, and checks the rights
// to it and its version.
func (t *Txn) at(path string, need, version int32, versionOf func(*Node) int32) (*Node, jute.Code) {
	if !validPath(path) {
		return nil, jute.ErrBadArguments
	}
	n := t.s.nodes[path]
	switch {
	case n == nil:
		return nil, jute.ErrNoNode
	case !Allowed(n.ACL(), need, t.ids):
		return nil, jute.ErrNoAuth
	case version != -1 && version != versionOf(n):
		return nil, jute.ErrBadVersion
	}
	return n, jute.OK
}

func dataVersion(n *Node) int32 { return n.version }

func aclVersion(n *Node) int32 { return n.aversion }

func (t *Txn) SetData(path string, data []byte, version int32) (*Node, jute.Code) {
	n, code := t.at(path, jute.PermWrite, -1, dataVersion)
	if code != jute.OK {
		return nil, code
	}
	grown := len(data) - len(n.Data)
	switch {
	case t.exceedsQuota(path, 0, grown):
		return nil, jute.ErrQuotaExceeded
	case version != -1 && version != n.version:
		return nil, jute.ErrBadVersion
	}
	t.save(path, n, false, false)
	n.Data = nil
	if data != nil {
		n.Data = append([]byte{}, data...)
	}
	n.version++
	n.mzxid, n.mtime = t.Zxid, t.now
	t.account(path, 0, grown)
	t.changed(StepData, n)
	t.Events = append(t.Events, Change{kind: jute.EventDataChanged, path: path, acl: n.ACL()})
	return n, jute.OK
}

func (t *Txn) SetACL(path string, list []jute.ACL, version int32) (*Node, jute.Code) {
	if !validPath(path) {
		return nil, jute.ErrBadArguments
	}
	acl, ok := t.s.fixACL(list, t.ids)
	if !ok {
		return nil, jute.ErrInvalidACL
	}
	n, code := t.at(path, jute.PermAdmin, version, aclVersion)
	if code != jute.OK {
		return nil, code
	}
	n.Rights = t.s.acls.share(acl)
	n.aversion++
	t.changed(StepACL, n)
	return n, jute.OK
}

func (t *Txn) Check(path string, version int32) (*Node, jute.Code) {
	return t.at(path, jute.PermRead, version, dataVersion)
}
