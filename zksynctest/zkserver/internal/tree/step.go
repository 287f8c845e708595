package tree

import (
	"fmt"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// The kinds of the steps that lead from one tree to the next. A step states a result and not
// an action, so that the rules that lead to a result may change without changing the format.
const (
	StepPut    = 2 // a whole znode, new or not
	StepCount  = 3 // path, pzxid and creates of a parent
	StepData   = 4 // path, data, mzxid, mtime, version
	StepACL    = 5 // path, acl, aversion
	StepDelete = 6 // path
)

// step is a change to a znode that is to be in the data file.
type step struct {
	Kind byte
	N    *Node
}

// changed notes a step for the end of the transaction. A step states the result of the whole
// transaction, so that a multi notes each kind for a znode once, and only the StepPut of a znode that it creates.
func (t *Txn) changed(kind byte, n *Node) {
	if !t.s.Rules.Steps {
		return
	}
	s := step{kind, n}
	if t.Multi {
		if _, whole := t.noted[step{StepPut, n}]; kind != StepDelete && whole {
			return
		}
		if _, again := t.noted[s]; again {
			return
		}
		if t.noted == nil {
			t.noted = map[step]struct{}{}
		}
		t.noted[s] = struct{}{}
	}
	t.Steps = append(t.Steps, s)
}

// AppendStep appends the step of a kind that leads to n.
func AppendStep(b []byte, kind byte, n *Node) []byte {
	b = jute.AppendString(append(b, kind), n.Path)
	switch kind {
	case StepPut:
		b = appendSavedACL(jute.AppendBuffer(b, n.Data), n)
		for _, v := range [...]int64{n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.Owner} {
			b = jute.AppendInt64(b, v)
		}
		b = jute.AppendInt32(b, n.version)
		b = jute.AppendInt32(b, n.creates)
		b = jute.AppendInt32(b, n.aversion)
	case StepCount:
		b = jute.AppendInt32(jute.AppendInt64(b, n.pzxid), n.creates)
	case StepData:
		b = jute.AppendBuffer(b, n.Data)
		b = jute.AppendInt32(jute.AppendInt64(jute.AppendInt64(b, n.mzxid), n.mtime), n.version)
	case StepACL:
		b = jute.AppendInt32(appendSavedACL(b, n), n.aversion)
	}
	return b
}

// appendSavedACL has one byte for the list that nearly all znodes have.
func appendSavedACL(b []byte, n *Node) []byte {
	open := n.Rights == &jute.OpenACL
	if b = jute.AppendBool(b, open); !open {
		b = jute.AppendACLs(b, n.ACL())
	}
	return b
}

// Apply reads a step and carries it out.
func (t *Tree) Apply(d *jute.Decoder, kind byte) error {
	path := d.Text()
	n := t.nodes[path]
	if n == nil && kind != StepPut {
		return fmt.Errorf("there is no znode %q to change", path)
	}
	switch kind {
	case StepPut:
		m := Node{Data: copied(d.Buffer()), Rights: t.savedACL(d)}
		for _, v := range [...]*int64{&m.czxid, &m.mzxid, &m.pzxid, &m.ctime, &m.mtime, &m.Owner} {
			*v = d.Int64()
		}
		m.version, m.creates, m.aversion = d.Int32(), d.Int32(), d.Int32()
		if d.Bad {
			return nil
		}
		return t.put(path, n, &m)
	case StepCount:
		n.pzxid, n.creates = d.Int64(), d.Int32()
	case StepData:
		n.Data = copied(d.Buffer())
		n.mzxid, n.mtime, n.version = d.Int64(), d.Int64(), d.Int32()
	case StepACL:
		n.Rights, n.aversion = t.savedACL(d), d.Int32()
	case StepDelete:
		if reserved(path) || path == "" || len(n.Children()) > 0 {
			return fmt.Errorf("the znode %q cannot have been deleted", path)
		}
		t.remove(path, n)
	}
	return nil
}

func (t *Tree) put(path string, n, m *Node) error {
	if n == nil {
		parent, _, ok := splitPath(path)
		if !ok || !validPath(path) || t.nodes[parent] == nil {
			return fmt.Errorf("the znode %q has no parent, or no valid path", path)
		}
		t.insert(path, m)
		return nil
	}
	if n.Owner != m.Owner {
		return fmt.Errorf("the znode %q has changed its owner", path)
	}
	n.Data, n.Rights = m.Data, m.Rights
	n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime = m.czxid, m.mzxid, m.pzxid, m.ctime, m.mtime
	n.version, n.creates, n.aversion = m.version, m.creates, m.aversion
	return nil
}

func (t *Tree) savedACL(d *jute.Decoder) *[]jute.ACL {
	if d.Bool() {
		return &jute.OpenACL
	}
	return t.acls.share(d.ACLs(nil))
}

// copied returns a copy of b, which is nil only if b is.
func copied(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
