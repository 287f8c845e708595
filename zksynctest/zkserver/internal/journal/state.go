package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Errors of data that are read.
var (
	// ErrCorrupt reports data that are damaged, or that this package did not write.
	ErrCorrupt = errors.New("zkserver: the data is corrupt")
	// ErrNewerFormat reports data that a later version of this package wrote.
	ErrNewerFormat = errors.New("zkserver: the data is of a newer format")
)

// State is the part of a server that outlives it.
type State struct {
	Tree     *tree.Tree
	Sessions map[int64]Session
	LastIDs  map[byte]int64 // the newest session of each server, by its number
	Zxid     int64
	complete bool // a whole snapshot has been read
}

// savedSession is a session in a data file.
type Session struct {
	Password [16]byte
	Timeout  time.Duration
}

func NewState() *State {
	return &State{Tree: tree.NewTree(), Sessions: map[int64]Session{}, LastIDs: map[byte]int64{}}
}

// The kinds of the steps that lead to a state, besides the steps of a tree.
const (
	stepZxid     = 1  // zxid
	stepSession  = 7  // id, timeout in ms; new or not; in the first version, with a password that is derived from the id
	stepEnd      = 8  // id of a session that is over
	stepLastID   = 9  // id of the newest session of its server
	stepComplete = 10 // how many znodes; the end of a snapshot
	stepBatch    = 11 // where in the file it is; the beginning of a write
	stepSecret   = 12 // id, timeout in ms and the 16 bytes of the password of a session; new or not
)

func appendNumber(b []byte, kind byte, v int64) []byte { return jute.AppendInt64(append(b, kind), v) }

func appendSession(b []byte, id int64, sess Session) []byte {
	b = jute.AppendInt64(appendNumber(b, stepSecret, id), sess.Timeout.Milliseconds())
	return append(b, sess.Password[:]...)
}

// AppendTo appends a snapshot, from the header on.
func (st *State) AppendTo(b []byte) []byte {
	b = appendDataHeader(b)
	start := len(b)
	b = beginDataFrame(b)
	b = appendNumber(b, stepZxid, st.Zxid)
	for _, id := range st.LastIDs {
		b = appendNumber(b, stepLastID, id)
	}
	for id, sess := range st.Sessions {
		b = appendSession(b, id, sess)
	}
	for n := range st.Tree.All() {
		b = tree.AppendStep(b, tree.StepPut, n)
		if len(b)-start > snapshotFrame {
			b = endDataFrame(b, start)
			start = len(b)
			b = beginDataFrame(b)
		}
	}
	b = appendNumber(b, stepComplete, int64(st.Tree.Size()-1))
	return endDataFrame(b, start)
}

// Apply takes the steps of one frame.
func (st *State) Apply(frame []byte) error {
	d := jute.Decoder{Rest: frame, Known: st.Tree, Exact: true}
	for len(d.Rest) > 0 {
		kind := d.Take(1)[0]
		var err error
		switch kind {
		case stepZxid:
			st.Zxid = d.Int64()
		case tree.StepPut, tree.StepCount, tree.StepData, tree.StepACL, tree.StepDelete:
			if err = st.Tree.Apply(&d, kind); err != nil {
				err = fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
		case stepSession:
			id := d.Int64()
			err = st.applySession(id, d.Int64(), PasswordOf(id))
		case stepSecret:
			var password [16]byte
			id, ms := d.Int64(), d.Int64()
			copy(password[:], d.Take(len(password)))
			err = st.applySession(id, ms, password)
		case stepEnd:
			delete(st.Sessions, d.Int64())
		case stepLastID:
			st.sawID(d.Int64())
		case stepBatch:
			d.Int64() // it is of use only where the file is damaged
		case stepComplete:
			if want, have := d.Int64(), int64(st.Tree.Size()-1); want != have {
				err = fmt.Errorf("%w: %d znodes, want %d", ErrCorrupt, have, want)
			}
			st.complete = true
		default:
			err = fmt.Errorf("%w: a step has the unknown kind %d", ErrCorrupt, kind)
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

func (st *State) applySession(id, ms int64, password [16]byte) error {
	if id == 0 || ms <= 0 || ms > 1<<31 {
		return fmt.Errorf("%w: session %#x has a timeout of %d ms", ErrCorrupt, id, ms)
	}
	st.Sessions[id] = Session{password, time.Duration(ms) * time.Millisecond}
	st.sawID(id)
	return nil
}

func (st *State) sawID(id int64) {
	server := byte(uint64(id) >> 56)
	if last, ok := st.LastIDs[server]; !ok || id > last {
		st.LastIDs[server] = id
	}
}
