package zkserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// Errors of what was written by [Server.Snapshot] or into [Config.DataFile].
var (
	// ErrCorrupt is that it is not as it was written, or was never written by this
	// package.
	ErrCorrupt = errors.New("zkserver: the data is corrupt")
	// ErrNewerFormat is that a later version of this package wrote it.
	ErrNewerFormat = errors.New("zkserver: the data is of a newer format")
)

// state is what outlives a server.
type state struct {
	tree     *tree
	acls     aclTable
	sessions map[int64]savedSession
	lastIDs  map[byte]int64 // the newest session of each server, by its number
	zxid     int64
	complete bool // a whole snapshot has been read
}

type savedSession struct {
	password [16]byte
	timeout  time.Duration
}

func newState() *state {
	return &state{tree: newTree(), sessions: map[int64]savedSession{}, lastIDs: map[byte]int64{}}
}

// The steps that lead to a state. Each says what is, and not what to do: the
// rules by which it came about may change without changing what is written.
const (
	stepZxid     = 1  // zxid
	stepPut      = 2  // a whole znode, new or not
	stepCount    = 3  // path, pzxid and creates of a parent
	stepData     = 4  // path, data, mzxid, mtime, version
	stepACL      = 5  // path, acl, aversion
	stepDelete   = 6  // path
	stepSession  = 7  // id, timeout in ms; new or not; in the first version, with a password that is derived from the id
	stepEnd      = 8  // id of a session that is over
	stepLastID   = 9  // id of the newest session of its server
	stepComplete = 10 // how many znodes; the end of a snapshot
	stepBatch    = 11 // where in the file it is; the beginning of a write
	stepSecret   = 12 // id, timeout in ms and the 16 bytes of the password of a session; new or not
)

func appendStep(b []byte, kind byte, n *node) []byte {
	b = jute.AppendString(append(b, kind), n.path)
	switch kind {
	case stepPut:
		b = appendSavedACL(jute.AppendBuffer(b, n.data), n)
		for _, v := range [...]int64{n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime, n.owner} {
			b = jute.AppendInt64(b, v)
		}
		b = jute.AppendInt32(b, n.version)
		b = jute.AppendInt32(b, n.creates)
		b = jute.AppendInt32(b, n.aversion)
	case stepCount:
		b = jute.AppendInt32(jute.AppendInt64(b, n.pzxid), n.creates)
	case stepData:
		b = jute.AppendBuffer(b, n.data)
		b = jute.AppendInt32(jute.AppendInt64(jute.AppendInt64(b, n.mzxid), n.mtime), n.version)
	case stepACL:
		b = jute.AppendInt32(appendSavedACL(b, n), n.aversion)
	}
	return b
}

// appendSavedACL has one byte for the list that nearly all znodes have.
func appendSavedACL(b []byte, n *node) []byte {
	open := n.rights == &jute.OpenACL
	if b = jute.AppendBool(b, open); !open {
		b = jute.AppendACLs(b, n.acl())
	}
	return b
}

func appendNumber(b []byte, kind byte, v int64) []byte { return jute.AppendInt64(append(b, kind), v) }

func appendSession(b []byte, id int64, password [16]byte, timeout time.Duration) []byte {
	b = jute.AppendInt64(appendNumber(b, stepSecret, id), timeout.Milliseconds())
	return append(b, password[:]...)
}

// apply takes the steps of one frame.
func (st *state) apply(frame []byte) error {
	d := jute.Decoder{Rest: frame, Known: st.tree}
	for len(d.Rest) > 0 {
		kind := d.Take(1)[0]
		var err error
		switch kind {
		case stepZxid:
			st.zxid = d.Int64()
		case stepPut, stepCount, stepData, stepACL, stepDelete:
			err = st.applyNode(&d, kind, d.Text())
		case stepSession:
			id := d.Int64()
			err = st.applySession(id, d.Int64(), passwordOf(id))
		case stepSecret:
			var password [16]byte
			id, ms := d.Int64(), d.Int64()
			copy(password[:], d.Take(len(password)))
			err = st.applySession(id, ms, password)
		case stepEnd:
			delete(st.sessions, d.Int64())
		case stepLastID:
			st.sawID(d.Int64())
		case stepBatch:
			d.Int64() // it is of use only where the file is damaged
		case stepComplete:
			if want, have := d.Int64(), int64(len(st.tree.nodes)-1); want != have {
				err = fmt.Errorf("%w: there are %d znodes in it, and not %d", ErrCorrupt, have, want)
			}
			st.complete = true
		default:
			err = fmt.Errorf("%w: it has a step of the unknown kind %d", ErrCorrupt, kind)
		}
		if err == nil && d.Bad {
			err = fmt.Errorf("%w: a step of kind %d ends too early", ErrCorrupt, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (st *state) applySession(id, ms int64, password [16]byte) error {
	if id == 0 || ms <= 0 || ms > 1<<31 {
		return fmt.Errorf("%w: session %#x has a timeout of %d ms", ErrCorrupt, id, ms)
	}
	st.sessions[id] = savedSession{password, time.Duration(ms) * time.Millisecond}
	st.sawID(id)
	return nil
}

func (st *state) sawID(id int64) {
	server := byte(uint64(id) >> 56)
	if last, ok := st.lastIDs[server]; !ok || id > last {
		st.lastIDs[server] = id
	}
}

func (st *state) applyNode(d *jute.Decoder, kind byte, path string) error {
	n := st.tree.nodes[path]
	if n == nil && kind != stepPut {
		return fmt.Errorf("%w: there is no znode %q to change", ErrCorrupt, path)
	}
	switch kind {
	case stepPut:
		m := node{data: copied(d.Buffer()), rights: st.savedACL(d)}
		for _, v := range [...]*int64{&m.czxid, &m.mzxid, &m.pzxid, &m.ctime, &m.mtime, &m.owner} {
			*v = d.Int64()
		}
		m.version, m.creates, m.aversion = d.Int32(), d.Int32(), d.Int32()
		if d.Bad {
			return nil
		}
		return st.put(path, n, &m)
	case stepCount:
		n.pzxid, n.creates = d.Int64(), d.Int32()
	case stepData:
		n.data = copied(d.Buffer())
		n.mzxid, n.mtime, n.version = d.Int64(), d.Int64(), d.Int32()
	case stepACL:
		n.rights, n.aversion = st.savedACL(d), d.Int32()
	case stepDelete:
		if reserved(path) || path == "" || len(n.children()) > 0 {
			return fmt.Errorf("%w: the znode %q cannot have been deleted", ErrCorrupt, path)
		}
		st.tree.remove(path, n)
	}
	return nil
}

func (st *state) put(path string, n, m *node) error {
	if n == nil {
		parent, _, ok := splitPath(path)
		if !ok || !validPath(path) || st.tree.nodes[parent] == nil {
			return fmt.Errorf("%w: the znode %q has no parent, or no valid path", ErrCorrupt, path)
		}
		st.tree.insert(path, m)
		return nil
	}
	if n.owner != m.owner {
		return fmt.Errorf("%w: the znode %q has changed its owner", ErrCorrupt, path)
	}
	n.data, n.rights = m.data, m.rights
	n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime = m.czxid, m.mzxid, m.pzxid, m.ctime, m.mtime
	n.version, n.creates, n.aversion = m.version, m.creates, m.aversion
	return nil
}

func (st *state) savedACL(d *jute.Decoder) *[]ACL {
	if d.Bool() {
		return &jute.OpenACL
	}
	return st.acls.share(d.ACLs(nil))
}

// copied keeps apart what is null and what is empty.
func copied(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}
