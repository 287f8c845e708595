package session

import "time"

// An Observer has functions that report the activity of a Manager, and of the primitives
// that use the Manager, for metrics and traces: see WithObserver. Functions that are nil
// are not called.
//
// The goroutines that read from the network and the goroutines of callers call the
// functions, several at a time, and some with locks held. So the functions must return at
// once, and must not call the Manager, a Session or a primitive.
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
	Session  int64 // 0 if there is none
}

// RequestDone is the end of a request: its answer, or the end of its connection.
type RequestDone struct {
	Op      string // for example "create", "multi" or "ping"
	Path    string // with the chroot; empty for the transactions of Multi and for requests of the Manager
	Server  string
	Latency time.Duration
	Class   Class // the class of the answer; ClassConnectionLost if there was no answer
	Own     bool  // the Manager has made the request, to keep the session proven alive or to clean up
}

// WaitEnded is the end of a call's wait, for example for a lock that another client held.
// A call that need not wait reports none. A Take that waits for a message reports one.
// Chan and Messages report none. Puts that wait together for room in a queue report one
// for all.
type WaitEnded struct {
	Op, Path  string
	Duration  time.Duration
	Cancelled bool // the ctx of the call has ended the wait
}

// HoldStarted is the grant of a znode that excludes other clients, or of a leadership.
// Goroutines of a process that hand a znode to each other share one hold.
type HoldStarted struct {
	// Path is the directory of the znode, which is the path of a Mutex, of an RWMutex or of an
	// Election. For an Election with LayoutEphemeral it is the path, too. For a Semaphore it is
	// the directory of the lock while the first in line waits for units, and then the directory
	// of the units. A participant of a DoubleBarrier has the path of the barrier, and the claims of a
	// queue's value have the directory zksync-claims of the queue.
	Path    string
	Session int64
}

// HoldEnded is the end of a hold.
type HoldEnded struct {
	Path     string // as in HoldStarted
	Session  int64
	Duration time.Duration
	Lost     error // nil after a release; otherwise it wraps ErrLost, also after a removal, or ErrClosed
}

// Delivered is the delivery of a message by the channel of a queue.
type Delivered struct {
	Path string // of the queue
	Size int    // of the message, in bytes
}

// QueueLength is the number of messages in a queue, including claimed messages. It causes
// no request, so it is reported only when the messages are listed for another reason: by
// Len, and for a Queue also by Peek, by a consumer that must find the next message, and
// by a Put that finds a bounded queue full. Call Len from time to time if a consumer has
// a long backlog or a Queue has no consumers. Len alone counts the messages of Retry and Nack that are in
// a directory of their own.
type QueueLength struct {
	Path   string
	Length int
}

// and returns an observer that calls the functions of both observers.
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
