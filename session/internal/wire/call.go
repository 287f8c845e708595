package wire

import (
	"sync/atomic"
	"time"
)

// A Request is an operation and its encoded record. It may be sent several times, and must
// not be changed after the first time.
type Request struct {
	Op     int32
	Path   string    // with the chroot; empty for several
	Parts  []Request // of a transaction: their Op and Path
	Record []byte    // the encoded fields

	// Invalid is why the request must not be sent: an argument of the caller. It is nil if the
	// request may be sent.
	Invalid error

	Own  bool // the Manager makes the request, and no caller
	Beat bool // the request is a transaction that only proves the session or a quorum alive
	// Awaited reports that the caller waits for the outcome of a request that was sent although its
	// ctx has ended: package session then abandons no such request.
	Awaited bool

	// Then is called with each outcome before the caller learns of it: with an answer in the
	// goroutine that reads the connection, before any other frame is looked at. It must not block.
	// It may be nil.
	Then func(*Call)
	// Follow is called when the request was sent on a connection, and may send other requests
	// behind it. Package session calls it, for the requests of callers. It may be nil.
	Follow func(*Conn, *Call)
	// Late is called with the outcome, perhaps ErrUnsent, if the caller has gone. It must not block. It may be nil.
	Late func(*Call)
}

// Reads reports whether the request changes nothing on the servers.
func (r *Request) Reads() bool {
	switch r.Op {
	case OpGetData, OpExists, OpGetChildren2, OpMultiRead, OpGetEphemerals, OpSync:
		return true
	}
	return false
}

// OfCaller reports whether the request serves a caller, and does not keep the connection
// or the session alive.
func (r *Request) OfCaller() bool {
	switch r.Op {
	case OpPing, OpSync, OpSASL, OpSetWatches, OpRemoveWatches, OpCloseSession:
		return false
	}
	return !r.Beat
}

// asksLeader reports whether a follower passes the request on to its leader.
func (r *Request) asksLeader() bool {
	switch r.Op {
	case OpSync, OpCreate, OpCreateContainer, OpDelete, OpSetData, OpMulti:
		return true
	}
	return false
}

// A Call is a Request that was sent on one connection, until it is answered or the
// connection ends.
type Call struct {
	*Request
	Sent time.Time // before the write, which is the cautious choice for the lease
	Conn uint64    // the number of the connection, see Config

	// The outcome, valid after Done is closed.
	Err  error // ErrUnsent or ErrConnectionLost; nil if there is an answer
	Code int32
	Body []byte
	Zxid int64 // of the answer: the newest transaction that the server had applied
	// The server closed the connection when this call was the next to be answered:
	// perhaps because of the call.
	Refused bool
	// The server closed the connection, and of the calls without an answer this one was the
	// largest: perhaps it was above the limit of the server.
	Suspect bool

	xid    int32
	guilty *LostAnswer // the reason if the answer has ended the connection; see Conn.blame
	state  atomic.Int32
	done   chan struct{}
	late   func(*Call) // is called in place of closing done, if the call is abandoned
}

const (
	callWaiting int32 = iota
	callOver
	callAbandoned
)

// Done returns a channel that is closed when the outcome is there.
func (c *Call) Done() <-chan struct{} { return c.done }

// finish gives the outcome to the caller, once. The functions that it calls must not
// block.
func (c *Call) finish() {
	// Before the caller learns of the outcome, and in the reader's goroutine: the next
	// frame may be the event of a watch to which Then subscribes.
	if c.Then != nil {
		c.Then(c)
	}
	// Either this swap or the swap in Abandon succeeds, so the outcome goes to the caller or
	// to late, and never to both.
	if c.state.CompareAndSwap(callWaiting, callOver) {
		close(c.done)
		return
	}
	c.late(c)
}

// Abandon makes late responsible for the outcome. It reports false, and does nothing, if
// the outcome is already there.
func (c *Call) Abandon(late func(*Call)) bool {
	// Before the swap: finish calls late as soon as the swap has succeeded.
	c.late = late
	// If the swap fails, nobody reads late.
	return c.state.CompareAndSwap(callWaiting, callAbandoned)
}

// Abandoned reports whether Abandon has made another function responsible for the outcome.
func (c *Call) Abandoned() bool { return c.state.Load() == callAbandoned }

// MultiCode returns the code of the answer. The code of a transaction is the code of
// the operation that failed.
func (c *Call) MultiCode() int32 {
	if c.Code != 0 || c.Op != OpMulti {
		return c.Code
	}
	d := Decoder{B: c.Body}
	for op := range d.Results() {
		if op != -1 {
			break // if one operation fails, every result is an error
		}
		// The operations ahead of the failed one have the code 0, and the operations behind
		// it have -2.
		if code := d.Int(); code != 0 && code != CodeRuntimeInconsistency {
			return code
		}
	}
	return 0
}

// MultiEmpty reports whether a transaction had no operations.
func (c *Call) MultiEmpty() bool {
	d := Decoder{B: c.Body}
	d.Int()
	// The header that ends a transaction has this flag. Without operations it is the first
	// header. An answer without a body counts as empty, so it is no proof of a commit.
	return d.Bool() || d.Bad
}

// The operations of the protocol that the client uses.
const (
	OpCreate          int32 = 1
	OpDelete          int32 = 2
	OpExists          int32 = 3
	OpGetData         int32 = 4
	OpSetData         int32 = 5
	OpGetChildren     int32 = 8
	OpSync            int32 = 9
	OpPing            int32 = 11
	OpGetChildren2    int32 = 12
	OpCheck           int32 = 13
	OpMulti           int32 = 14
	OpCreate2         int32 = 15
	OpRemoveWatches   int32 = 18
	OpCreateContainer int32 = 19
	OpMultiRead       int32 = 22
	OpGetEphemerals   int32 = 103
	OpSetWatches      int32 = 101
	OpSASL            int32 = 102
	OpCloseSession    int32 = -11

	opAuth int32 = 100
)

var opNames = map[int32]string{
	OpCreate: "create", OpCreateContainer: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "get",
	OpSetData: "set", OpSync: "sync", OpGetChildren2: "children", OpMulti: "multi", OpMultiRead: "multiRead", OpGetEphemerals: "getEphemerals",
	OpRemoveWatches: "removeWatches", OpSetWatches: "setWatches", OpPing: "ping", OpCheck: "check", OpSASL: "sasl",
	OpCloseSession: "closeSession",
}

// OpName returns the name of an operation in errors, log lines and events.
func OpName(op int32) string { return opNames[op] }

// The error codes in answers that decide something in this package.
const (
	CodeUnimplemented        int32 = -6 // the server does not know the operation
	CodeRuntimeInconsistency int32 = -2 // of an operation in a transaction: another operation has failed
)
