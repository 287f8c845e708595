package session

import (
	"iter"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// An InboxRead is a read of an Inbox, and then the watch that the answer armed.
type InboxRead struct {
	in  *Inbox
	tag any
	key watchKey // of the watch
	op  int32

	// The following fields are guarded by in.mu.
	state   readState
	refused bool   // see inboxRefusals
	rounds  int32  // attempts without an answer
	guilt   int32  // see maxGuilt
	watch   *Watch // while the watch is armed
}

// readState is the progress of an InboxRead.
type readState uint8

const (
	readQueued  readState = iota // waits to be sent, for the first time or again
	readSent                     // sent and not answered
	readArmed                    // answered, and the watch has not fired
	readOver                     // answered without a watch, or the watch has fired
	readStopped                  // stopped: nothing is delivered any more
)

// Stop ends the read and its watch: no further delivery of the read arrives. A delivery
// that had arrived before may still be received. Stop may be called more than once.
func (r *InboxRead) Stop() {
	in := r.in
	in.mu.Lock()
	before, watch := r.state, r.watch
	if before == readOver || before == readStopped {
		in.mu.Unlock()
		return
	}
	r.state, r.watch = readStopped, nil
	delete(in.live, r)
	over := in.endRefusals(r)
	// The request still occupies the connection, and its answer is on the way.
	switch before {
	case readSent:
		in.s.gate.countAbandoned()
	case readQueued:
		in.dropStopped()
	}
	in.mu.Unlock()
	over.Stop()
	// Not under in.mu: hub.mu is taken ahead of in.mu when an event is delivered.
	if before == readArmed {
		watch.Stop()
	}
}

// request builds the request of the read.
func (r *InboxRead) request() *wire.Request {
	if !r.watched() {
		return &wire.Request{Op: r.op, Path: r.key.path, Record: checkRecord(r.key.path)}
	}
	record := make(wire.Encoder, 0, len(r.key.path)+5).String(r.key.path).Bool(true)
	return &wire.Request{Op: r.op, Path: r.key.path, Record: record}
}

// watched reports whether the read arms a watch. Only SyncQuorum does not.
func (r *InboxRead) watched() bool { return r.op != wire.OpMulti }

// opError returns err with the name and the path of the read.
func (r *InboxRead) opError(err error) error {
	name := "sync"
	if r.watched() {
		name = wire.OpName(r.op)
	}
	return opError(name, r.in.s.m.strip(r.key.path), err)
}

// send sends the request on w, which the caller has entered. It returns false if w has
// ended. The read is then repeated.
func (r *InboxRead) send(w *wire.Conn) (sent bool) {
	hub, watched := r.in.s.hub, r.watched()
	var entry *watchEntry
	// Before the request: the idle watch of an earlier read must not be removed meanwhile.
	if watched {
		entry = hub.pin(r.key)
	}
	sent = true
	// The function runs in the reader's goroutine, so that no event of the watch can
	// arrive before it subscribes. If w has ended, it runs in this goroutine.
	request := r.request()
	request.Then = func(c *wire.Call) {
		if c.Err == wire.ErrUnsent {
			sent = false
		}
		var watch *Watch
		if watched {
			if armsWatch(c) {
				watch = hub.subscribe(r.key, c.Conn, c.Code != 0)
			}
			// After subscribe: without a pin and without a waiter the watch would be given
			// up.
			hub.unpin(entry)
		}
		r.settle(c, watch)
		r.in.s.gate.leave()
	}
	w.Send(request)
	return sent
}

// settle handles the outcome of one attempt.
func (r *InboxRead) settle(c *wire.Call, watch *Watch) {
	in := r.in
	in.mu.Lock()
	stopped := r.state == readStopped
	// An answer that is too large would break one connection after another, for all callers.
	var err error
	lost, broke := c.Err.(*wire.LostAnswer)
	if broke {
		r.guilt += int32(lost.Guilt)
		if r.guilt >= maxGuilt && IsAnswerTooLarge(lost.Reason) {
			err = lost.Reason
		}
	}
	in.inFlight--
	var over *Wait
	switch {
	case stopped:
		signal(in.wake) // the window has room for the owner's next read
	case err == nil && again(c):
		r.state = readQueued
		now := time.Now()
		switch {
		case c.Err == nil:
			in.refuse(r, errorOfCode(c.MultiCode()), now)
		case broke:
			in.refuse(r, lost.Reason, now)
		case c.Err != wire.ErrUnsent && r.rounds > 0:
			// The loss of one connection costs all reads in flight an answer, and has lines of its own.
			in.noteFailure(r, c.Err)
		}
		in.repeats.add(r, now.Add(r.pause(c)))
		signal(in.wake)
	default:
		r.state, r.watch = readArmed, watch
		if watch == nil {
			r.finish()
		}
		over = in.endRefusals(r)
		switch {
		case err != nil:
		case r.watched():
			err = errorOfCode(c.Code)
		default:
			err = quorumOf(c)
		}
		r.answer(in.s.m.cfg.denied(err, r.op, r.key.path), c.Body)
	}
	in.mu.Unlock()
	over.Stop()
	if stopped {
		in.s.gate.settleAbandoned()
	}
	// Not under in.mu: Notify may call event at once, which takes in.mu.
	switch {
	case watch == nil:
	case stopped:
		watch.Stop()
	default:
		watch.Notify(r.event)
	}
}

// finish removes the read from the reads that Close stops; in.mu is held.
func (r *InboxRead) finish() {
	r.state = readOver
	delete(r.in.live, r)
}

// answer delivers the outcome of the read; in.mu is held.
func (r *InboxRead) answer(err error, body []byte) {
	r.in.push(Delivery{Kind: InboxAnswer, Tag: r.tag, Read: r, Err: r.opError(err), body: body})
}

// event delivers the event of the watch. It runs in the reader's goroutine.
func (r *InboxRead) event(ev zk.Event) {
	in := r.in
	in.mu.Lock()
	defer in.mu.Unlock()
	// The end of the session is not an event of the znode: Receive reports the end.
	if r.state != readArmed || ev.Type == zk.EventNotWatching {
		return
	}
	r.watch = nil
	r.finish()
	in.push(Delivery{Kind: InboxEvent, Tag: r.tag, Read: r, Event: ev.Type})
}

// pause returns the pause before the next attempt.
func (r *InboxRead) pause(c *wire.Call) time.Duration {
	if c.Err == wire.ErrUnsent {
		return 0
	}
	r.rounds++
	if guilt(c.Err) > 0 {
		// The network may be slow for a while only, and the owner follows the znode for months.
		if more := int(r.guilt) - maxGuilt + 1; more > 0 { // as for the removals of the janitor
			return r.in.s.m.jitter.spread(backoff(more, maxBackoff, maxReport))
		}
		return r.in.s.requests.guiltPause()
	}
	round := int(r.rounds)
	if c.Err != nil {
		// As for every read: the first two reconnects are pause enough.
		if round -= 2; round <= 0 {
			return 0
		}
	}
	return r.in.s.m.jitter.backoff(round)
}

// again reports whether an attempt must be repeated, because its outcome shows nothing
// about the znode.
func again(c *wire.Call) bool {
	switch classOfCall(c) {
	// An internal error of a server is no reason to leave the znode unknown for as long as the session
	// lasts: nothing would ask for it again.
	case ClassConnectionLost, ClassTransient, ClassUnknown:
		return true
	}
	return c.Err != nil
}

// A DeliveryKind is the kind of a Delivery.
type DeliveryKind uint8

const (
	// InboxAnswer is the answer to Read. Err is set, or Data or Names decode the result.
	InboxAnswer DeliveryKind = iota + 1
	// InboxEvent is the event of the watch of Read. Event is the type of the event.
	InboxEvent
	// InboxPost is a delivery of Post.
	InboxPost
	// InboxConnection reports that another connection came into use. Armed watches stay
	// armed.
	InboxConnection
)

// A Delivery is one answer, event, post or change of connection that has arrived in an
// Inbox.
type Delivery struct {
	Kind  DeliveryKind
	Tag   any        // the tag of the read, or of Post
	Read  *InboxRead // of InboxAnswer and InboxEvent
	Event zk.EventType
	Err   error // of InboxAnswer: zk.ErrNoNode, or a final refusal

	body []byte
}

// Data decodes the answer to Inbox.Data. The data share the memory of the answer.
func (d *Delivery) Data() ([]byte, *zk.Stat, error) {
	dec := wire.Decoder{B: d.body}
	data, stat := dec.Buffer(), dec.Stat()
	return data, stat, d.decoded(&dec)
}

// Names decodes the answer to Inbox.Children. The names come in the server's order and
// share one string: use strings.Clone to keep a name.
func (d *Delivery) Names() (iter.Seq[string], *zk.Stat, error) {
	dec := wire.Decoder{B: d.body}
	names, stat := dec.List(), dec.Stat()
	return names, stat, d.decoded(&dec)
}

// Fits reports whether the data of a znode fit into an answer of WithMaxAnswer, by the answer to
// Inbox.Exists.
func (d *Delivery) Fits() bool {
	const others = 16 + 4 + 68 // the header, the length of the data, and the Stat
	dec := wire.Decoder{B: d.body}
	stat := dec.Stat()
	return !dec.Bad && others+int(stat.DataLength) <= d.Read.in.s.m.cfg.maxAnswer
}

func (d *Delivery) decoded(dec *wire.Decoder) error {
	if dec.Bad {
		return d.Read.opError(wire.ErrMalformed)
	}
	return nil
}
