package session

import "time"

// An Observer is told what a Manager and the primitives that are built on it do, for
// metrics and traces: see WithObserver. Functions that are nil are not called.
//
// The functions are called by the goroutines that read from the network and by those
// of callers, several at a time, and some with locks held. So they must return at once,
// and must not call the Manager, a Session or a primitive.
type Observer struct {
	StateChanged func(StateChange)
	RequestDone  func(RequestDone)
	WaitEnded    func(WaitEnded)
	HoldStarted  func(HoldStarted)
	HoldEnded    func(HoldEnded)
	Delivered    func(Delivered)
	QueueLength  func(QueueLength)
}

// A StateChange is a change of Manager.State.
type StateChange struct {
	From, To State
	Session  int64 // 0 while there is none
}

// RequestDone is the end of a request: its answer, or the end of its connection.
type RequestDone struct {
	Op      string // as "create", "multi" or "ping"
	Path    string // as the servers know the path; empty for transactions and for requests of the Manager
	Server  string
	Latency time.Duration
	Class   Class // of the answer; ClassConnectionLost if there was none
	Own     bool  // the Manager has made the request, to keep the session proven alive or to clean up
}

// WaitEnded is the end of a call's wait, as for a lock that another client held.
// Calls that need not wait have none. A Take that waits for a message has one; Chan and
// Messages have none. Puts that wait together for room in a queue have one in common.
type WaitEnded struct {
	Op, Path  string
	Duration  time.Duration
	Cancelled bool // the ctx of the call has ended the wait
}

// HoldStarted is the grant of a znode that excludes others, or by which the process
// leads. Goroutines of a process that hand a znode to each other have one hold.
type HoldStarted struct {
	Path    string // the directory of the znode: the path of a Mutex or an Election
	Session int64
}

// HoldEnded is the end of what HoldStarted began.
type HoldEnded struct {
	Path     string
	Session  int64
	Duration time.Duration
	Lost     error // nil after a release; otherwise it wraps ErrLost or ErrClosed
}

// Delivered is the delivery of a message by the channel of a queue.
type Delivered struct {
	Path string // of the queue
	Size int    // of the message, in bytes
}

// QueueLength is the number of messages that are in a queue, with those that consumers
// have claimed. It is reported where the messages are listed anyway: by Len, and for a
// Queue also by Peek, by a consumer that needs to know what is next, and by a Put that
// finds a bounded queue full. No request is made for it. So a consumer with a long
// backlog, and a Queue without consumers, need a call of Len now and then.
type QueueLength struct {
	Path   string
	Length int
}

// and returns an observer that tells both.
func (o Observer) and(other Observer) Observer {
	return Observer{
		StateChanged: both(o.StateChanged, other.StateChanged),
		RequestDone:  both(o.RequestDone, other.RequestDone),
		WaitEnded:    both(o.WaitEnded, other.WaitEnded),
		HoldStarted:  both(o.HoldStarted, other.HoldStarted),
		HoldEnded:    both(o.HoldEnded, other.HoldEnded),
		Delivered:    both(o.Delivered, other.Delivered),
		QueueLength:  both(o.QueueLength, other.QueueLength),
	}
}

func both[T any](f, g func(T)) func(T) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(event T) {
		f(event)
		g(event)
	}
}
