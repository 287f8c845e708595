package session

import (
	"sync/atomic"
	"time"
)

// A call is one request on one connection, from the moment it is written until
// it is answered or the connection ends.
type call struct {
	op   int32
	of   *request  // nil for calls of the keeper and the janitor
	sent time.Time // before the write, so that what it proves is proven from then on

	// What came of it: valid once done is closed.
	err  error // errUnsent or ErrConnectionLost; nil when there is an answer
	code int32
	zxid int64
	body []byte
	conn uint64 // the number of the connection, see wire.number

	done  chan struct{}
	state atomic.Int32
	beat  bool // the keeper has made it

	// The server closed the connection when this call was the next to be answered:
	// perhaps because of the call.
	refused bool

	// answered runs in the reader's goroutine when the answer has come, before
	// anything that follows it on the connection is looked at.
	answered func(*call)
	// late runs instead of closing done when the caller has gone.
	late func(*call)
}

const (
	callWaiting int32 = iota
	callOver
	callAbandoned
)

// finish hands the outcome to whoever waits for it. It must not be called
// twice, and nothing that it calls may block.
func (c *call) finish() {
	if c.answered != nil && c.err == nil {
		c.answered(c)
	}
	if c.state.CompareAndSwap(callWaiting, callOver) {
		close(c.done)
		return
	}
	c.late(c)
}

// abandon makes late responsible for the outcome; it reports false where the
// outcome is already there.
func (c *call) abandon(late func(*call)) bool {
	c.late = late
	return c.state.CompareAndSwap(callWaiting, callAbandoned)
}

// ofCaller reports whether c was made for a caller, and not to keep the connection or
// the session alive.
func (c *call) ofCaller() bool {
	switch c.op {
	case opPing, opSync, opSASL, opSetWatches, opRemoveWatches:
		return false
	}
	return !c.beat
}

func (c *call) failure() error {
	if c.err != nil {
		return c.err
	}
	return errorOfCode(c.code)
}

// proves says what the answer to c shows. Only a transaction that had an effect,
// or would have had one, is a commit: a follower refuses some requests without
// its leader, and a leader that was deposed answers everything but transactions.
func (c *call) proves() evidence {
	if c.err != nil {
		return proofNothing
	}
	if c.code != 0 {
		return proofContact
	}
	switch c.op {
	case opSync:
		return proofLeader
	case opCreate, opCreateContainer, opDelete, opSetData:
		return proofCommit
	case opMulti:
		if !c.multiEmpty() && c.multiCode() == 0 {
			return proofCommit
		}
	}
	return proofContact
}

// asksLeader says whether a follower passes c on to its leader.
func (c *call) asksLeader() bool {
	switch c.op {
	case opSync, opCreate, opCreateContainer, opDelete, opSetData, opMulti:
		return true
	}
	return false
}

// classOfCall is ClassOf for the outcome of a call.
func classOfCall(c *call) Class {
	if c.err != nil {
		return ClassOf(c.err)
	}
	return classOfCode(c.multiCode())
}

// multiCode returns the code of the answer; that of a transaction is the code of
// the operation that failed.
func (c *call) multiCode() int32 {
	if c.code != 0 || c.op != opMulti {
		return c.code
	}
	for d := (decoder{b: c.body}); ; {
		op, done, _ := d.int(), d.bool(), d.int()
		if d.bad || done || op != -1 {
			return 0 // if one operation fails, every result is an error
		}
		if code := d.int(); code != 0 && code != codeRuntimeInconsistency {
			return code
		}
	}
}

// multiEmpty says whether a transaction had no operations. ZooKeeper answers
// such a transaction without looking at the session.
func (c *call) multiEmpty() bool {
	d := decoder{b: c.body}
	d.int()
	return d.bool() || d.bad
}
