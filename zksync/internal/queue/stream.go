package queue

import (
	"context"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxUnconfirmed is the number of received messages of Chan whose removal may be
// unconfirmed. These messages may be delivered again after a crash.
const maxUnconfirmed = 128

// A stream delivers messages to one receiver in three stages, each of which has a
// goroutine: claim, read, deliver. Each stage works on other messages at the same time.
type stream struct {
	c        *Consumer
	receive  func(ctx context.Context, d *Delivery) bool // false if it was not received
	ack      bool                                        // acknowledge each message at its receipt
	noRoom   *session.Wait                               // for room for the names of more messages
	slots    chan struct{}                               // has one element for each unconfirmed message
	removals sync.WaitGroup
	trouble  trouble // until a message was received, and removed if ack, or no error has come for a while
}

// Deliver calls receive for one message after another, until the Consumer or the Manager
// is closed or messages cannot be received at all. It returns the reason. receive returns
// false if the message was not received because ctx ended. If ack, each message is
// removed when receive has returned true; otherwise the receiver settles it.
func (c *Consumer) Deliver(ack bool, receive func(ctx context.Context, d *Delivery) bool) error {
	if err := c.beginCall(); err != nil {
		return err
	}
	defer c.endCall()
	p := &stream{c: c, receive: receive, ack: ack}
	defer p.trouble.end()
	err := c.cfg.Manager.Do(c.ctx, func(ctx context.Context, s *session.Session) error {
		for {
			calm := time.AfterFunc(s.Timeout()/2, p.trouble.end)
			err := p.consumeSession(ctx, s)
			calm.Stop()
			if s.Err() != nil || !goesOn(err) {
				return err
			}
			if err := s.Pause(ctx, p.trouble.note(&c.cfg, err)-1); err != nil {
				return err
			}
		}
	})
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return err
}

// goesOn reports whether a stream goes on under the same session after an error.
func goesOn(err error) bool {
	switch session.ClassOf(err) {
	case session.ClassRemoved:
		return true // another client has deleted the ledger: go on with another one
	case session.ClassUnknown:
		return true // nobody restarts a consumer that is meant to run for ever
	}
	return session.IsAnswerTooSlow(err) // a slow network only delays messages
}

// consumeSession delivers messages as long as a session lasts.
func (p *stream) consumeSession(ctx context.Context, s *session.Session) error {
	v := p.c.viewOf(s)
	l, err := p.c.openClaims(ctx, v)
	if err != nil {
		return err
	}
	p.c.window.reset()
	p.slots = make(chan struct{}, maxUnconfirmed)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.usable, func() { cancel(context.Cause(l.usable)) })()
	reader := &messageReader{v: v}
	claimed := make(chan claim, 1)
	// No more than the limit is claimed and not received, so that read never blocks here.
	ready := make(chan *Delivery, p.c.cfg.Prefetch+1)
	var stages sync.WaitGroup
	var unread []*Delivery
	stages.Go(func() {
		defer close(claimed)
		cancel(p.claim(ctx, l, reader, claimed))
	})
	stages.Go(func() {
		defer close(ready)
		for c := range claimed {
			rest, err := p.read(ctx, reader, c, ready)
			if unread = append(unread, rest...); err != nil {
				cancel(err)
			}
		}
	})
	unreceived := p.deliver(ctx, v, ready, cancel)
	// deliver may see the end of the ledger before the function above, and the reason must not be
	// lost: the stream goes on with another ledger.
	cancel(context.Cause(l.usable))
	stages.Wait()
	// Messages that were read and not handed over still have their claims.
	for d := range ready {
		unreceived = append(unreceived, d)
	}
	// The next session has slots of its own, and needs to know which messages are being
	// removed.
	p.removals.Wait()
	_ = giveBack(0, append(unreceived, unread...)...) // no delivery has ended: the receiver has not seen these messages
	err = context.Cause(ctx)
	if s.Err() != nil || l.usable.Err() != nil {
		// Other consumers may have claimed the messages that were received.
		for d := range v.unsettled.Range {
			// In one step: a call that settles d meanwhile ends the claim itself.
			if _, ok := v.unsettled.LoadAndDelete(d); ok {
				d.(*Delivery).endClaim((*partitionList).relist)
			}
		}
	}
	if s.Err() != nil {
		return znode.LossOf(s.Err())
	}
	return err
}

// claim claims messages whenever there is room for them, and sends them to claimed. It
// returns the reason why it stopped.
func (p *stream) claim(ctx context.Context, l *ledger, reader *messageReader, claimed chan<- claim) error {
	v := l.v
	line := newIdleLine(v)
	defer line.leave()
	contended := false   // other consumers claim messages at the same time
	refused := 0         // how many times in a row other consumers were faster
	var looked time.Time // the last look at the line
	took := leastTrip    // the time of the last attempt
	wait := func(ctx context.Context) error {
		p.endNoRoom()
		return line.wait(ctx)
	}
	defer p.endNoRoom()
	for {
		if err := p.waitForRoom(ctx, v, line); err != nil {
			return err
		}
		if contended {
			var err error
			if contended, err = line.tryTurn(ctx, took); err != nil {
				return err
			}
		}
		if _, err := v.next(ctx, none, wait, true); err != nil {
			return err
		}
		if err := l.rest(ctx); err != nil {
			return err
		}
		if !contended && line.path == "" && v.order.known().isOwn() && time.Since(looked) > maxPause {
			looked = time.Now()
			if contended = line.othersWait(ctx); contended {
				continue
			}
		}
		most := 0
		began := time.Now()
		c, err := l.claim(func(st *orderState, removals int) (sel selection) {
			if v.order.mustRecover(st) {
				return sel // next recovers first
			}
			p.limitBy(l, st, nil)
			sel, _ = v.partitions.pick(func(free, n int) int {
				most = min(p.roomIn(v, removals), maxClaims, reader.most())
				return p.c.window.batch(most, free, n)
			}, st)
			p.limitBy(l, st, sel.refs)
			return sel
		}, reader.readBehind, line)
		took = max(time.Since(began), leastTrip)
		p.c.window.claimTime.Store(int64(took))
		pause := time.Duration(0)
		switch {
		case session.ClassOf(err) == session.ClassTooLarge:
			// Consumers with a larger WithMaxRequest have filled the claim table: wait until they have settled
			// messages.
			p.c.window.setLimit(v.claims.unsettled())
		case err == errConflict:
			contended = true
			if line.turn {
				line.leave() // nobody would wait for this contender any more
			}
			// If the turns do not help, and all consumers tried again at once, the same would happen
			// again. The random pause doubles with each failure, from the time that a request takes.
			if refused = min(refused+1, 7); refused > 1 {
				pause = time.Duration(line.rnd.Int64N(int64(min(took<<(refused-1), maxPause)) + 1))
			}
		case err != nil && err != errNothingFree:
			return err
		}
		if err != nil {
			if err := znode.WaitUntil(ctx, v.s, nil, time.Now().Add(pause)); err != nil {
				return err
			}
			if pause > 0 {
				// The state that was read at the refusal is an old one by now.
				v.order.forget(v.order.known())
			}
			continue
		}
		p.endNoRoom()
		refused = 0
		v.order.watchLedgers()
		p.c.window.claimed(len(c.all), len(c.all) >= most)
		reader.claims.Add(1)
		claimed <- c
	}
}

// deliver hands messages to the receiver, until ctx ends. It returns the messages that
// it could not hand over.
func (p *stream) deliver(ctx context.Context, v *view, ready <-chan *Delivery, end context.CancelCauseFunc) []*Delivery {
	received := false
	for {
		var d *Delivery
		select {
		case d = <-ready:
		default:
			// The receiver is faster than the stream: the window may grow. Before the first
			// receipt, no receiver is known to wait.
			p.c.window.starve(received)
			select {
			case d = <-ready:
			case <-ctx.Done():
			}
		}
		if d == nil {
			return nil
		}
		began := time.Now()
		if znode.SessionLost(v.s) != nil {
			// The machine was suspended: the session ends at its next step, which is near.
			_ = znode.WaitUntil(ctx, v.s, nil, time.Time{})
		}
		// ctx ends a little later than the session, and other consumers can claim the
		// message as soon as the session has ended, or the ledger has gone.
		if ctx.Err() != nil || v.s.Err() != nil || d.l.usable.Err() != nil || !p.handOver(ctx, v, d, end) {
			return []*Delivery{d}
		}
		received = true
		p.c.window.received(d, time.Since(began))
	}
}
