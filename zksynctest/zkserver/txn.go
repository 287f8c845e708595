package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// txn applies the writes of one transaction to the tree. Each write checks
// everything before it changes anything. What it changes is noted in undo when
// the transaction is a multi, and in events for the watches, which fire when it
// is committed.
type txn struct {
	s     *Server
	zxid  int64
	now   int64 // wall clock in milliseconds, the same for all it creates
	ids   []identity
	multi bool

	events []change
	steps  []step // for the data file, if there is one
	ended  int64  // the session that ends with this
	undo   []undo
	// counters has the sequence counters of parents as the operations of this
	// multi left them: in the tree they stop at the greatest int32, but names
	// within one multi wrap around.
	counters map[*node]int32
}

// change is what a write means for watches.
type change struct {
	kind           EventType
	path, parent   string
	acl, parentACL []ACL
}

// undo is the state of a node before a write.
type undo struct {
	path    string
	n       *node
	before  node
	created bool // path was not there
	deleted bool // path was there
}

// nextZxid begins a transaction. The first one of an epoch is number 1.
func (s *Server) nextZxid() {
	s.zxid = max(s.zxid+s.wasted, s.en.epoch<<32) + 1
	s.wasted = 0
}

// begin takes the next zxid for a write with the rights of ids.
func (s *Server) begin(ids []identity, nowMs int64, multi bool) *txn {
	s.nextZxid()
	t := &s.txn
	clear(t.events)
	clear(t.steps)
	*t = txn{s: s, zxid: s.zxid, now: nowMs, ids: ids, multi: multi, events: t.events[:0], undo: t.undo[:0], steps: t.steps[:0]}
	return t
}

func (t *txn) save(path string, n *node, created, deleted bool) {
	if t.multi {
		t.undo = append(t.undo, undo{path, n, *n, created, deleted})
	}
}

// rollBack takes everything back, the latest first.
func (t *txn) rollBack() {
	tree := t.s.tree
	for _, u := range slices.Backward(t.undo) {
		switch {
		case u.created:
			tree.remove(u.path, u.n)
		case u.deleted:
			tree.insert(u.path, u.n)
		default:
			n := u.n
			n.data, n.rights = u.before.data, u.before.rights
			n.mzxid, n.pzxid, n.mtime = u.before.mzxid, u.before.pzxid, u.before.mtime
			n.version, n.creates, n.aversion = u.before.version, u.before.creates, u.before.aversion
		}
	}
	t.events, t.steps = t.events[:0], t.steps[:0]
}

func (t *txn) delete(path string, version int32) Code {
	tree := t.s.tree
	parentPath, _, ok := splitPath(path)
	if !ok || reserved(path) {
		return ErrBadArguments
	}
	parent := tree.nodes[parentPath]
	if parent == nil {
		return ErrNoNode
	}
	if !allowed(parent.acl(), jute.PermDelete, t.ids) {
		return ErrNoAuth
	}
	n := tree.nodes[path]
	switch {
	case n == nil:
		return ErrNoNode
	case version != -1 && version != n.version:
		return ErrBadVersion
	case len(n.children()) > 0:
		return ErrNotEmpty
	}
	t.remove(path, n)
	return jute.OK
}

// remove takes out a node that may go.
func (t *txn) remove(path string, n *node) {
	parentPath, _, _ := splitPath(path)
	parent := n.parent
	t.save(parentPath, parent, false, false)
	t.s.tree.remove(path, n)
	t.save(path, n, false, true)
	if t.zxid > parent.pzxid {
		parent.pzxid = t.zxid
	}
	t.account(path, -1, -len(n.data))
	t.changed(stepDelete, n)
	t.changed(stepCount, parent)
	if parent.isReapable() {
		t.s.reapLater(parent, time.Now())
	}
	t.events = append(t.events, change{EventDeleted, path, parentPath, n.acl(), parent.acl()})
}

// at finds the node of an operation on one existing path, and checks the rights
// to it and its version.
func (t *txn) at(path string, need, version int32, versionOf func(*node) int32) (*node, Code) {
	if !validPath(path) {
		return nil, ErrBadArguments
	}
	n := t.s.tree.nodes[path]
	switch {
	case n == nil:
		return nil, ErrNoNode
	case !allowed(n.acl(), need, t.ids):
		return nil, ErrNoAuth
	case version != -1 && version != versionOf(n):
		return nil, ErrBadVersion
	}
	return n, jute.OK
}

func dataVersion(n *node) int32 { return n.version }

func aclVersion(n *node) int32 { return n.aversion }

func (t *txn) setData(path string, data []byte, version int32) (*node, Code) {
	n, code := t.at(path, jute.PermWrite, -1, dataVersion)
	if code != jute.OK {
		return nil, code
	}
	grown := len(data) - len(n.data)
	switch {
	case t.exceedsQuota(path, 0, grown):
		return nil, ErrQuotaExceeded
	case version != -1 && version != n.version:
		return nil, ErrBadVersion
	}
	t.save(path, n, false, false)
	n.data = nil
	if data != nil {
		n.data = append([]byte{}, data...)
	}
	n.version++
	n.mzxid, n.mtime = t.zxid, t.now
	t.account(path, 0, grown)
	t.changed(stepData, n)
	t.events = append(t.events, change{kind: EventDataChanged, path: path, acl: n.acl()})
	return n, jute.OK
}

func (t *txn) setACL(path string, list []ACL, version int32) (*node, Code) {
	if !validPath(path) {
		return nil, ErrBadArguments
	}
	acl, ok := t.s.fixACL(list, t.ids)
	if !ok {
		return nil, ErrInvalidACL
	}
	n, code := t.at(path, jute.PermAdmin, version, aclVersion)
	if code != jute.OK {
		return nil, code
	}
	n.rights = t.s.acls.share(acl)
	n.aversion++
	t.changed(stepACL, n)
	return n, jute.OK
}

func (t *txn) check(path string, version int32) (*node, Code) {
	return t.at(path, jute.PermRead, version, dataVersion)
}
