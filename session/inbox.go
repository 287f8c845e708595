package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// inboxWindow is the number of requests of one Inbox in flight. It keeps a server busy
// over a network with a delay of some milliseconds.
const inboxWindow = 256

// An Inbox sends reads with watches, and receives the answers and the watch events in the
// order in which the connection delivered them. It belongs to one Session and to one
// goroutine, its owner. The connection's reader only appends to the Inbox, and the owner
// decodes the answers. So a slow owner delays neither pings nor the lease nor requests of
// other callers.
//
// The order of the connection gives the owner these guarantees:
//
//   - An answer shows a state that is at least as new as every answer and event delivered
//     before it. If any call of this Session returned before a Post, an answer that is
//     delivered after the Post is also at least as new as the result of that call.
//   - The events of a watch are delivered only after the answer that armed the watch. A
//     change that the server made before that answer is part of the answer.
//   - The event of a change is delivered before every answer that shows the change. On a
//     new connection, the events of the changes that were made in between are delivered
//     before every answer.
//
// A read is repeated when its connection breaks. If the server refuses the read temporarily,
// or its answer is lost again or arrives too slowly, the pauses grow, and the log has the reason. So
// an answer is a result, zk.ErrNoNode, a final refusal or ErrAnswerTooLarge. The Inbox has no limit of
// size: it keeps every delivery until its owner receives the delivery.
//
// Only Post and Refusal may be called from other goroutines.
type Inbox struct {
	s     *Session
	wake  chan struct{} // has a buffer of one; filled after each delivery
	conn  uint64        // the connection that the owner was told of last
	first string        // the path of the first read, by which the log names the Inbox

	mu       sync.Mutex
	closed   bool
	arrived  []Delivery
	spare    []Delivery              // the batch before, for reuse
	firsts   readQueue               // reads to be sent for the first time
	repeats  readQueue               // reads to be sent again
	inFlight int                     // reads that were sent and not answered
	live     map[*InboxRead]struct{} // reads that are not over: Close stops them
	stopped  int                     // reads that were stopped in a queue, about
	refusals inboxRefusals
}

// NewInbox returns an empty Inbox. The owner must Close the Inbox when the owner stops
// receiving.
func (s *Session) NewInbox() *Inbox {
	return &Inbox{s: s, wake: make(chan struct{}, 1), live: make(map[*InboxRead]struct{})}
}

// Data reads the data of a znode, with a watch for a change of the data or the deletion
// of the znode. Every delivery of the read carries tag.
func (in *Inbox) Data(path string, tag any) *InboxRead {
	return in.begin(wire.OpGetData, dataWatch, path, tag)
}

// Exists looks for a znode, with a watch for its creation, change or deletion.
func (in *Inbox) Exists(path string, tag any) *InboxRead {
	return in.begin(wire.OpExists, dataWatch, path, tag)
}

// Children reads the names of the children of a znode, with a watch for a change of the
// list or the deletion of the znode.
func (in *Inbox) Children(path string, tag any) *InboxRead {
	return in.begin(wire.OpGetChildren2, childWatch, path, tag)
}

// SyncQuorum is [Session.SyncQuorum] in the order of the connection: if a change was
// committed before the call, the events of the change are delivered before the answer. The
// read has no watch.
func (in *Inbox) SyncQuorum(path string, tag any) *InboxRead {
	return in.begin(wire.OpMulti, dataWatch, path, tag)
}

// Post delivers tag to the owner, after everything that has been delivered so far. After
// Close, Post does nothing.
func (in *Inbox) Post(tag any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.push(Delivery{Kind: InboxPost, Tag: tag})
}

// begin queues a read. An invalid read is not sent and gets an answer at once.
func (in *Inbox) begin(op int32, kind watchKind, path string, tag any) *InboxRead {
	r := &InboxRead{in: in, op: op, tag: tag, key: watchKey{in.s.m.full(path), kind}}
	err := checkPath(path, false)
	if err == nil {
		err = in.s.m.records.checkSize(len(r.request().Record))
	}
	if err == nil && r.watched() {
		err = in.s.m.records.checkWatch(r.key.path)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.first == "" {
		in.first = r.key.path
	}
	switch {
	case in.closed:
		r.state = readOver
	case err != nil:
		r.state = readOver
		r.answer(err, nil)
	default:
		r.state = readQueued
		in.live[r] = struct{}{}
		in.firsts.add(r, time.Time{})
	}
	return r
}

// push appends a delivery and wakes the owner; in.mu is held.
func (in *Inbox) push(d Delivery) {
	if in.closed {
		return
	}
	in.arrived = append(in.arrived, d)
	signal(in.wake)
}

// Receive waits for deliveries, and returns them in the order of arrival. The slice is
// valid until the next call. Receive also sends queued reads, so the owner must call
// Receive again and again. It returns an error when ctx or the session ends. Deliveries
// that were not received are lost then.
func (in *Inbox) Receive(ctx context.Context) ([]Delivery, error) {
	for {
		now := time.Now() // one time for both calls, so that a read is either due or waited for
		// change reports a new connection, and also the room that answers to abandoned
		// requests leave.
		change, err := in.send(now)
		if err != nil {
			return nil, err
		}
		batch, pause := in.take(now)
		if len(batch) > 0 {
			return batch, nil
		}
		var retry <-chan time.Time
		if pause > 0 {
			retry = time.After(pause)
		}
		select {
		case <-in.wake:
		case <-change:
		case <-retry:
		case <-in.s.Done():
			return nil, in.s.Err()
		case <-ctx.Done():
			return nil, Cancelled(ctx)
		}
	}
}

// take returns the deliveries that have arrived, and the pause until the next read can be sent, 0 if
// it waits for no time.
func (in *Inbox) take(now time.Time) (batch []Delivery, pause time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	clear(in.spare) // answers are large, and the owner is done with them
	// Two slices take turns: the owner works on one while the connection's reader fills the
	// other one.
	batch, in.arrived, in.spare = in.arrived, in.spare[:0], in.arrived
	pause = in.firsts.pause(now)
	if d := in.repeats.pause(now); d > 0 && (pause == 0 || d < pause) {
		pause = d
	}
	return batch, pause
}

// send sends the reads that are due, as far as the window has room. change is closed when
// another connection comes into use.
func (in *Inbox) send(now time.Time) (change <-chan struct{}, err error) {
	for {
		w, change, err := in.s.gate.tryEnter(false)
		if err != nil || w == nil {
			return change, err
		}
		if in.conn != w.Number {
			in.conn = w.Number
			// Before the first read is sent on it, so that the owner learns of the
			// connection ahead of its answers.
			in.mu.Lock()
			in.push(Delivery{Kind: InboxConnection})
			in.mu.Unlock()
		}
		r := in.next(now)
		if r == nil {
			in.s.gate.leave()
			return change, nil
		}
		if !r.send(w) {
			return change, nil // the connection has just ended
		}
	}
}

// next removes the next read to be sent from its queue and returns it, or nil.
func (in *Inbox) next(now time.Time) *InboxRead {
	in.mu.Lock()
	defer in.mu.Unlock()
	// A read that waits for its next attempt leaves its room in the window to the other reads:
	// servers may refuse it for as long as the session lasts.
	if in.inFlight >= inboxWindow {
		return nil
	}
	r := in.repeats.next(now)
	if r == nil {
		r = in.firsts.next(now)
	}
	if r != nil {
		r.state = readSent
		in.inFlight++
	}
	return r
}

// Close stops all reads and discards deliveries that were not received.
func (in *Inbox) Close() {
	in.mu.Lock()
	// The connection's reader may still deliver, and push ignores that from now on.
	in.closed = true
	in.arrived, in.spare, in.firsts.reads = nil, nil, nil
	// Stop takes in.mu, and removes the read from in.live.
	live := slices.Collect(maps.Keys(in.live))
	in.mu.Unlock()
	for _, r := range live {
		r.Stop()
	}
}
