package zksync

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Message is a message that Messages has delivered. It belongs to the receiver
// alone, until Ack, Nack, or the loss of the session under which it was claimed. All
// methods may be called from any goroutine.
//
//	            received            Ack
//	waiting ---------------> ours -----------> gone
//	   ^                      |
//	   |   Nack, Close of the |
//	   +---- queue, lost -----+
type Message struct {
	// Data is the receiver's to keep and to change.
	Data []byte

	// ID is the path of the message's znode. No other message of the queue has the
	// same ID as long as the queue's directory exists, and the ID stays the same when
	// the message is delivered again.
	ID string

	c  *consumer // nil for a message of NewMessage
	cl *claim

	settler func(ctx context.Context, verb string) error // of a message of NewMessage

	mu       sync.Mutex
	verb     string        // the first of Ack, Nack and Close
	outcome  chan struct{} // closed when the outcome is known
	err      error         // the outcome; valid when outcome is closed
	reported bool          // a call has returned the success
}

func newMessage(c *consumer, cl *claim) *Message {
	return &Message{Data: cl.data, ID: cl.view.path(cl.messageRef), c: c, cl: cl, outcome: make(chan struct{})}
}

// Ack removes the message from the queue, and waits until that has happened. If ctx
// ends first, the removal goes on in the background, and Ack may be called again to
// learn the outcome.
//
// The error is ErrLost if this consumer had lost its claim on the message, so that
// the message is or was delivered again: the session was lost, the queue's value was
// closed, or another client removed the claim's znode. (If another consumer has a
// claim of the same name by then, the first Ack counts for both.) It is ErrSettled if
// Ack has returned nil before, or Nack was called.
//
// If an answer is lost, Ack finds out whether the message was removed, even if another
// client has removed the marker. Message and claim are removed together, so if the claim
// is gone while the session lives, this consumer has removed them, unless both were
// removed by hand. The error is ErrOutcomeUnknown if the session is lost, too, or the
// queue closed, before Ack could find out. With any other error, such as zk.ErrNoAuth
// where messages must not be removed, the message is given back. A message with children
// fails with zk.ErrNotEmpty, and this value skips it from then on (see Skipped).
func (m *Message) Ack(ctx context.Context) error {
	return opError("ack", m.ID, m.settleWith(ctx, "Ack"))
}

// Nack gives the message back to its old position in the queue, ahead of all later
// messages except messages that consumers have claimed in advance (see WithPrefetch).
// The next consumer that claims gets the message, and that may be this consumer, at
// once. Wait a while before you give back a message that you failed to handle: a
// message that is given back again and again keeps a consumer with WithPrefetch(1) from
// all other messages. Nack waits, and fails, like Ack.
func (m *Message) Nack(ctx context.Context) error {
	return opError("nack", m.ID, m.settleWith(ctx, "Nack"))
}

// settleWith starts the Ack or Nack that verb names, unless the message is settled
// already, and waits for the outcome.
func (m *Message) settleWith(ctx context.Context, verb string) error {
	if m.c == nil {
		if m.setVerb(verb) {
			m.setOutcome(m.settler(ctx, verb))
		}
	} else if err := m.c.beginCall(); err != nil {
		if err := m.waitForClose(ctx); err != nil {
			return err
		}
	} else if m.setVerb(verb) {
		// Not under ctx: the removal may have been sent when ctx ends. Its outcome must be
		// handled all the same, or the claim would stay.
		go func() {
			defer m.c.endCall()
			m.setOutcome(m.execute(verb))
		}()
	} else {
		m.c.endCall()
	}
	m.mu.Lock()
	first := m.verb
	m.mu.Unlock()
	if first != verb && first != "Close" {
		return fmt.Errorf("%w: %s was called before", ErrSettled, first)
	}
	select {
	case <-m.outcome:
	case <-ctx.Done():
		select {
		case <-m.outcome: // both are ready: report the outcome
		default:
			return session.Cancelled(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// An Ack whose ctx ended may be called again to learn the outcome. Only one call may
	// return the success.
	if m.err == nil && m.reported {
		return fmt.Errorf("%w: %s was called before", ErrSettled, first)
	}
	m.reported = true
	return m.err
}

// errClosedUnsettled is the outcome of a message that was neither acknowledged nor
// given back when its queue was closed.
var errClosedUnsettled = fmt.Errorf("%w: %w", ErrLost, ErrQueueClosed)

// waitForClose waits until Close, which has begun, gives the message back. It returns at
// once if the message was settled before.
func (m *Message) waitForClose(ctx context.Context) error {
	m.mu.Lock()
	settled := m.verb != ""
	m.mu.Unlock()
	if settled {
		return nil
	}
	select {
	case <-m.outcome:
	case <-m.c.q.closeReturned:
		// The session of the message was lost before, so that Close had nothing to give
		// back.
		if m.setVerb("Close") {
			m.setOutcome(errClosedUnsettled)
		}
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
	return nil
}

// setVerb sets the verb, and reports false if a verb was set before.
func (m *Message) setVerb(verb string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.verb != "" {
		return false
	}
	m.verb = verb
	// From here on the caller settles the message, and Close must not give it back.
	if m.c != nil {
		m.c.unsettled.forget(m)
	}
	return true
}

// setOutcome sets the outcome, and wakes the calls that wait for it.
func (m *Message) setOutcome(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	close(m.outcome)
}

// execute removes the message or gives it back. It retries over lost connections.
func (m *Message) execute(verb string) error {
	cl, v := m.cl, m.cl.view
	t := cl.removeTx()
	if verb == "Nack" {
		t = cl.releaseTx()
	}
	for round := 0; ; round++ {
		if err := v.s.Err(); err != nil {
			return znode.LossOf(err)
		}
		_ = v.s.Pause(m.c.cleanupCtx, round-1) // if the pause is cut short, the next request returns the reason
		var err error
		if verb == "Ack" && round == 0 && cl.partition.mayBeRecreated() {
			// A claim outside of the directory survives the deletion of the directory. The
			// message of this name may be another one by now, which was not received.
			// checkOutcome compares the czxids.
			err = ErrRemoved
		} else {
			err = m.waitForEntry(m.c.q.removals.StartOne(v.s, t))
		}
		if err == nil {
			v.releaseHeld(1)
			if verb == "Nack" {
				v.requeue(cl.messageRef)
			} else {
				v.forgetMessage(cl.messageRef)
			}
			return nil
		}
		// The loss of the session explains any other failure. An unknown outcome stays
		// unknown.
		if v.s.Err() != nil && !commit.IsUnknown(err) {
			return znode.LossOf(err)
		}
		// A refusal is final, and Close may have stopped waiting. The message must become
		// free for other consumers, though not by this goroutine.
		if m.c.cleanupCtx.Err() != nil || err != ErrRemoved && session.ClassOf(err) != session.ClassNoNode && !commit.IsUnknown(err) {
			if session.ClassOf(err) == session.ClassNotEmpty {
				v.skip(cl.messageRef, err)
			}
			m.c.discardClaims(cl)
			return err
		}
		again, err := m.checkOutcome(verb, err)
		if !again {
			return err
		}
	}
}

// waitForEntry waits for the outcome of an entry, but no longer than Close. After the end
// of the session it withdraws an entry that was not sent.
func (m *Message) waitForEntry(e *commit.Entry) error {
	s, cleanup := m.cl.view.s, m.c.cleanupCtx
	select {
	case <-e.Done():
		return e.Err()
	case <-s.Done():
		err := e.Abandon(znode.LossOf(s.Err()))
		// An entry that was sent may have happened. The committer finds that out under
		// another session, by its marker.
		select {
		case <-e.Done():
			return e.Err()
		case <-cleanup.Done():
			return err
		}
	case <-cleanup.Done():
		return e.Abandon(errClosedUnsettled)
	}
}

// checkOutcome looks up a message after an Ack or a Nack whose outcome is unknown, or
// that found the message or the claim missing. It returns true if the verb must be
// executed again.
func (m *Message) checkOutcome(verb string, why error) (again bool, err error) {
	cl, v := m.cl, m.cl.view
	there, ours, err := cl.lookUp(m.c.cleanupCtx)
	switch {
	case err != nil:
		m.c.discardClaims(cl)
		return false, errors.Join(why, err)
	case ours && (there || verb == "Nack"):
		return true, nil // nothing has happened
	}
	if ours {
		m.c.releaseClaims([]*claim{cl}) // the claim on a message that does not exist
	} else {
		v.releaseHeld(1)
	}
	v.relistPartition(cl.messageRef)
	// Only this consumer deletes its claim, so if the claim is gone, our transaction has
	// deleted it. Then a missing message proves nothing after Nack, because another
	// consumer may have removed the message by now. After Ack the message can exist only
	// if another client has deleted the claim by hand, and then the Ack has not happened.
	if commit.IsUnknown(why) && !ours && (!there || verb == "Nack") {
		return false, nil
	}
	return false, ErrRemoved
}

// unsettledMessages has the messages that were delivered and neither acknowledged nor
// given back.
type unsettledMessages struct {
	mu  sync.Mutex
	all map[*Message]struct{}
}

func (u *unsettledMessages) add(m *Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[*Message]struct{})
	}
	u.all[m] = struct{}{}
}

func (u *unsettledMessages) forget(m *Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, m)
}

// ofSession returns the messages of one session, or of all sessions if s is nil.
func (u *unsettledMessages) ofSession(s *session.Session) []*Message {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []*Message
	for m := range u.all {
		if s == nil || m.cl.view.s == s {
			all = append(all, m)
		}
	}
	return all
}

// nackUnsettled gives back the messages that were delivered and not settled, when the
// queue is closed.
func (c *consumer) nackUnsettled() {
	byView := make(map[*queueView][]*claim)
	for _, m := range c.unsettled.ofSession(nil) {
		if m.setVerb("Close") {
			m.setOutcome(errClosedUnsettled)
			// The claims of a lost session end with it.
			if m.cl.view.s.Err() == nil {
				byView[m.cl.view] = append(byView[m.cl.view], m.cl)
			}
		}
	}
	for _, claims := range byView {
		c.releaseClaims(claims)
	}
}
