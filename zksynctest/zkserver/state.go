package zkserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
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
	tree     *tree.Tree
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
	return &state{tree: tree.NewTree(), sessions: map[int64]savedSession{}, lastIDs: map[byte]int64{}}
}

// The steps that lead to a state. Each says what is, and not what to do: the
// rules by which it came about may change without changing what is written.
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
		case tree.StepPut, tree.StepCount, tree.StepData, tree.StepACL, tree.StepDelete:
			if err = st.tree.Apply(&d, kind); err != nil {
				err = fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
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
			if want, have := d.Int64(), int64(st.tree.Size()-1); want != have {
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
