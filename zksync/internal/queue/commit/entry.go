package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Tx is a transaction: its operations happen together or not at all.
type Tx struct {
	Ops  []any  // as for session.Multi
	Size int    // in bytes, roughly
	Dir  string // the directory of a sequential create, which is created if it does not exist; may be empty
	// Stale reports that the transaction relies on a read that is not true any more. It is nil if the
	// transaction relies on no read. Otherwise Stale is called right before the transaction is sent,
	// which ends with ErrStale if Stale reports true, or if it would have to be sent again.
	Stale func() bool
	// After is a transaction that has to happen before, or nil. If it fails, this one is not sent.
	After *Entry
}

// largeMessage is the size from which on NewCreate checks whether a message fits into a
// request. No limit is below 1,024 bytes.
const largeMessage = 512

// maxSettleRoom is the number of bytes that a request of Put leaves free, so that the message
// also fits into the requests of Retry and MoveTo, which write a ledger and an order znode.
const maxSettleRoom = 2048

// NewCreate returns the transaction that creates a sequential znode in dir. name is the
// prefix of its name. It fails with session.ErrTooLarge if data do not fit into a request
// that moves the message.
func (c *Committer) NewCreate(dir, name string, data []byte) (Tx, error) {
	// A cancelled entry may be sent again together with other entries of its request,
	// so it needs a copy of data.
	create := &zk.CreateRequest{Path: znode.Join(dir, name), Data: bytes.Clone(data), Flags: zk.FlagSequence}
	t := Tx{Ops: []any{create}, Size: len(create.Path) + len(data) + 100, Dir: dir}
	if len(data) < largeMessage {
		return t, nil
	}
	// A request also writes the marker, whose name is as long as znode.GUIDForm, and a request
	// that moves the message deletes it.
	size, err := c.m.MultiSize(&zk.SetDataRequest{Path: znode.Join(c.sender.marker.dir, znode.GUIDForm), Data: requestMark.raising(maxMarkerVersion)}, create, &zk.DeleteRequest{Path: create.Path})
	if err != nil {
		return Tx{}, err
	}
	limit := c.m.MaxRequest()
	if size += min(limit/8, maxSettleRoom); size > limit {
		return Tx{}, fmt.Errorf("%w: a message of %d bytes, want at most %d (jute.maxbuffer of the servers; see session.WithMaxRequest)",
			session.ErrTooLarge, len(data), limit-(size-len(data)))
	}
	return t, nil
}

// ErrStale is the outcome of a transaction that relies on a read which may not be true any more.
var ErrStale = errors.New("zksync: the data that was read may belong to an earlier directory")

// An Entry is a Tx under way.
type Entry struct {
	Tx
	c    *Committer
	done chan struct{}
	err  error // valid once done is closed; see Wait

	// Guarded by c.mu:
	finished  bool  // err is set
	sent      bool  // it may have happened
	withdrawn error // why it is not sent again if it has not happened; nil if it is
	deserted  bool  // its caller has gone
}

// Wait waits for the outcome. nil says that the transaction has happened, exactly once.
// With an error that wraps ErrUnknown it may have happened. With any other error it has
// not happened and never will. When ctx ends, an entry that was not sent is withdrawn.
// For an entry that was sent, Wait may be called again to learn the outcome.
func (e *Entry) Wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	c := e.c
	why := Cancelled(ctx, c.m, c.Gate)
	c.mu.Lock()
	defer c.mu.Unlock()
	// If the outcome has arrived meanwhile, the caller gets it, and not the end of ctx.
	c.withdrawLocked(why, e)
	if e.finished {
		return e.err
	}
	// Wait may be called again, and counts its caller out only once.
	if !e.deserted {
		c.callerLeftLocked()
	}
	e.deserted = true
	return unknown(why)
}

// setLocked sets the outcome, and reports false if the entry had an outcome before. The
// caller closes done; c.mu is held.
func (e *Entry) setLocked(err error) bool {
	if e.finished {
		return false
	}
	e.finished, e.err, e.After = true, err, nil
	if !e.deserted {
		e.c.callerLeftLocked()
	}
	return true
}

// finishLocked sets the outcome; c.mu is held.
func (e *Entry) finishLocked(err error) {
	if e.setLocked(err) {
		close(e.done)
	}
}

// ErrUnknown says that a transaction may or may not have happened.
var ErrUnknown = errors.New("zksync: outcome unknown: the change may or may not have happened")

// unknown returns an ErrUnknown with the reason why the outcome is not known.
func unknown(why error) error { return &unknownError{why} }

// IsUnknown reports whether err itself is an ErrUnknown of this package. It does not
// unwrap err, since the ctx of a caller may have an ErrUnknown as its cause.
func IsUnknown(err error) bool {
	_, ok := err.(*unknownError)
	return ok
}

type unknownError struct{ why error }

func (e *unknownError) Error() string   { return fmt.Sprintf("%v: %v", ErrUnknown, e.why) }
func (e *unknownError) Unwrap() []error { return []error{ErrUnknown, e.why} }
