package session

import (
	"sync/atomic"
	"time"
)

// A call is one request on one connection, from the moment it is written until
// it is answered or the connection ends.
type call struct {
	op   int32
	sent time.Time // before the write, so that what it proves is proven from then on

	// What came of it: valid once done is closed.
	err  error // errUnsent or ErrConnectionLost; nil when there is an answer
	code int32
	zxid int64
	body []byte
	conn uint64 // the number of the connection, see wire.number

	done  chan struct{}
	state atomic.Int32

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

func (c *call) failure() error {
	if c.err != nil {
		return c.err
	}
	return codeError(c.code)
}

// provesLeader says whether the answer to c shows that the leader itself has
// handled it. Reads and pings are answered by a follower alone, and so are writes
// that it throttles, does not know, or refuses by a check of its own.
func (c *call) provesLeader() bool {
	switch c.op {
	case opCreate, opCreateContainer, opDelete, opSetData, opMulti, opSync:
	default:
		return false
	}
	switch c.code {
	case 0, codeNoNode, codeBadVersion, codeNoChildrenForEphemerals, codeNodeExists, codeNotEmpty:
		return c.err == nil
	}
	return false
}
