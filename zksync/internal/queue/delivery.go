package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// ErrSettled says that a message was acknowledged or given back before.
var ErrSettled = errors.New("zksync: the message is settled")

// errClosedUnsettled is the outcome of a message that was not settled when its consumer
// was closed.
var errClosedUnsettled error = unsettledError{}

// An unsettledError is session.ErrLost and ErrClosed. Its text does not say that the session was lost, which lives.
type unsettledError struct{}

func (unsettledError) Error() string {
	return "the claim on the message has ended: " + ErrClosed.Error()
}
func (unsettledError) Unwrap() []error { return []error{session.ErrLost, ErrClosed} }

// A Delivery is a message that its consumer has claimed.
//
//	claimed ---> received ---> settling ---> settled
//	    |                          |
//	    +------- given back -------+---> lost with the ledger
type Delivery struct {
	Data     []byte
	ID       string // the path of the znode
	Attempts int    // the number of deliveries, this one included

	ref   messageRef
	v     *view
	l     *ledger // that has the claim
	czxid int64
	ended atomic.Bool // the claim has ended

	verb     atomic.Pointer[string] // the first of Ack, Nack, Retry, MoveTo and Close; nil before
	outcome  chan struct{}          // closed when the outcome is known
	err      error                  // the outcome; valid when outcome is closed
	reported atomic.Bool            // a call has returned the outcome
}

// Lost returns a channel that is closed when the session ends under which the message was claimed.
// Other consumers may have the message from then on.
func (d *Delivery) Lost() <-chan struct{} { return d.v.s.Done() }

// Ack removes the message.
func (d *Delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "Ack", nil, func(done func(error)) { d.removeReceived(0, done) })
}

// Nack gives the message back to its position.
func (d *Delivery) Nack(ctx context.Context) error {
	return d.settle(ctx, "Nack", nil, inBackground(func() error {
		if sent, err := d.l.giveBack(1, d.ref); err != nil {
			return d.outcomeOf(err, sent)
		}
		d.endClaim((*partitionList).requeue)
		return nil
	}))
}

// Retry makes the message due again after a delay.
func (d *Delivery) Retry(ctx context.Context, delay time.Duration) error {
	return d.settle(ctx, "Retry", nil, inBackground(func() error {
		cfg := d.v.cfg
		prefix := laterPrefix(dueAfter(delay), d.Attempts)
		return d.remove(&Target{Dir: cfg.child(laterName), Prefix: prefix, NumberOf: numberOfLater, MakeDir: cfg.MakeDir, Life: d.v.life.ctx, later: true})
	}))
}

// dueAfter returns when a message is due that Retry delays, in milliseconds since 1970. A
// negative delay counts as zero.
func dueAfter(delay time.Duration) int64 {
	// Rounded up, since no message is due early. In two steps: a sum of Durations wraps, and
	// parseLater refuses a name with a negative time, so that the message would be lost.
	due := time.Now().Add(max(delay, 0)).Add(time.Millisecond - 1)
	return min(due.UnixMilli(), MaxDueMillis)
}

// inBackground returns a function that calls do on a goroutine, and then done with its result.
func inBackground(do func() error) func(done func(error)) {
	return func(done func(error)) { go func() { done(do()) }() }
}

// settle starts a verb unless the message is settled already, and waits for the outcome. The verb may
// wait at gate, if that is not nil. start does not block, and calls its argument once.
func (d *Delivery) settle(ctx context.Context, verb string, gate commit.Gate, start func(done func(error))) error {
	life := d.v.life
	if life.beginCall() != nil {
		// Close has begun, and gives the message back unless it was settled before.
		if d.verb.Load() == nil {
			select {
			case <-life.closed:
			case <-ctx.Done():
				return session.Cancelled(ctx)
			}
			if d.setVerb("Close") {
				d.setOutcome(errClosedUnsettled)
			}
		}
	} else if d.setVerb(verb) {
		// Not under ctx: the removal may have been sent when ctx ends. Its outcome must be
		// handled all the same, or the claim would stay.
		start(func(err error) {
			d.setOutcome(err)
			life.endCall()
		})
	} else {
		life.endCall()
	}
	first := *d.verb.Load()
	// After Close, each verb returns the outcome that Close has set.
	if first != verb && first != "Close" {
		return fmt.Errorf("%w: %s was called before", ErrSettled, first)
	}
	select {
	case <-d.outcome:
	case <-ctx.Done():
		select {
		case <-d.outcome: // both are ready: report the outcome
		default:
			return commit.Cancelled(ctx, d.v.cfg.Manager, gate)
		}
	}
	// A call whose ctx ended may be repeated to learn the outcome. Only one call may return
	// the success.
	if d.reported.Swap(true) && d.err == nil {
		return fmt.Errorf("%w: %s was called before", ErrSettled, first)
	}
	return d.err
}

// setVerb sets the verb, and reports false if a verb was set before.
func (d *Delivery) setVerb(verb string) bool {
	if !d.verb.CompareAndSwap(nil, &verb) {
		return false
	}
	// From here on the caller settles the message, and the end of its ledger does not end the claim.
	d.v.unsettled.Delete(d)
	return true
}

// setOutcome sets the outcome, and wakes the calls that wait for it.
func (d *Delivery) setOutcome(err error) {
	d.err = err
	close(d.outcome)
}

// endClaim notes, once, that this consumer does not hold the message any more. move says what becomes
// of the message in the view, nil if the view is not used any more.
func (d *Delivery) endClaim(move func(l *partitionList, r messageRef)) {
	// The loss of the ledger and the outcome of an Ack may both end the claim. Counted twice,
	// the lease would end while other claims need it.
	if d.ended.Swap(true) {
		return
	}
	if move != nil {
		move(&d.v.partitions, d.ref)
	}
	// Last: the stream has room then, and claims at once. A message that was given back must
	// wait before that, or later messages overtake it.
	d.v.claims.release(1)
}

// outcomeOf ends the claim after an attempt to settle the message, and returns the
// outcome for the caller.
func (d *Delivery) outcomeOf(err error, sent bool) error {
	v := d.v
	class := session.ClassOf(err)
	switch {
	case err == nil:
		d.endClaim((*partitionList).forget)
		return nil
	case v.s.Err() != nil:
		d.endClaim(nil)
		return unknownIf(sent, znode.LossOf(v.s.Err()))
	case class == session.ClassRemoved:
		// The ledger has gone, and the claim with it.
		d.endClaim((*partitionList).relist)
		return err
	case v.life.cleanupCtx.Err() != nil:
		// Close waits no longer. The claim ends with the ledger.
		return unknownIf(sent, errClosedUnsettled)
	case class == session.ClassNoNode:
		// Another client has removed the message.
		d.l.start(newDrop(d.ref)) // without waiting for it
		d.endClaim((*partitionList).forget)
		return session.ErrRemoved
	case class == session.ClassNotEmpty:
		v.skip(d.ref, err)
	}
	closed, ended := class == session.ClassCancelled && v.life.ctx.Err() != nil, 1
	if closed {
		ended = 0 // a delivery that Close has ended does not count
	}
	// The claim would keep the message from all consumers as long as the session lasts.
	if failed := giveBack(ended, d); sent && session.ClassOf(failed) == session.ClassRemoved {
		return failed // the ledger could have told the outcome
	}
	if closed {
		return errClosedUnsettled // MoveTo has waited for room
	}
	return unknownIf(sent, err)
}

// unknownIf returns the error of a removal that was given up. If its request was sent and
// not answered, the removal may have happened.
func unknownIf(sent bool, err error) error {
	if sent {
		return fmt.Errorf("%w: %w", commit.ErrUnknown, err)
	}
	return err
}

// giveBack gives back messages of one ledger. If that fails, it tries again in the background until
// the servers accept that or the ledger ends: the session may last for months. Until then the
// messages count as claimed. ended is as for ledger.giveBack.
func giveBack(ended int, all ...*Delivery) error {
	if len(all) == 0 {
		return nil
	}
	l, life, refs := all[0].l, all[0].v.life, refsOf(all)
	end := func(move func(l *partitionList, r messageRef)) {
		for _, d := range all {
			d.endClaim(move)
		}
	}
	_, err := l.giveBack(ended, refs...)
	if err == nil {
		end((*partitionList).requeue)
		return nil
	}
	later := func() {
		for round := 2; l.usable.Err() == nil && l.v.s.Pause(life.ctx, round) == nil; round++ {
			if _, err := l.giveBack(ended, refs...); err == nil {
				end((*partitionList).requeue)
				return
			}
		}
		end((*partitionList).relist)
	}
	if !life.spawn(later) {
		end(nil) // Close deletes the ledger, which gives the messages back
	}
	return err
}

func refsOf(all []*Delivery) []messageRef {
	refs := make([]messageRef, len(all))
	for i, d := range all {
		refs[i] = d.ref
	}
	return refs
}
