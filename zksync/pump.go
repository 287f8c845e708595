package zksync

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

const (
	firstPrefetch = 8

	// maxUnconfirmed is the number of received messages whose removal may be
	// unconfirmed. These messages may be delivered again after a crash.
	maxUnconfirmed = 128

	// prefetchBytes is the amount of data of messages that wait for the receiver.
	prefetchBytes = 16 << 20
)

// A pump delivers messages into a channel. It claims the next messages while claimed
// messages are being delivered, and while delivered messages are being removed.
//
// The number of messages that it claims ahead grows up to the limit as long as the
// receiver is faster than the pump. A slow receiver therefore does not keep messages
// from other consumers.
type pump struct {
	c       *consumer
	limit   int
	deliver func(ctx context.Context, cl *claim) bool // false if it was not received

	mu      sync.Mutex
	window  int
	waiting int  // claimed and not received
	bytes   int  // of those
	starved bool // the receiver has waited
	full    bool // the last claims were as many as there was room for
	kick    chan struct{}

	slots    chan struct{} // taken by unconfirmed messages
	removing chan unconfirmed
}

// An unconfirmed message was received and is being removed.
type unconfirmed struct {
	*claim
	*entry
}

// run delivers under one session after another, and returns why it stopped.
func (p *pump) run() error {
	err := p.c.q.m.Do(p.c.ctx, p.shift)
	if p.c.ctx.Err() != nil {
		return ErrQueueClosed
	}
	return err
}

// shift delivers for as long as a session lasts.
func (p *pump) shift(ctx context.Context, s *session.Session) error {
	v := p.c.viewOf(s)
	present, err := v.appear(ctx)
	if err != nil {
		return err
	}
	defer v.disappear(present)
	if err := v.succeed(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.window, p.waiting, p.bytes, p.starved, p.full = min(firstPrefetch, p.limit), 0, 0, false, false
	p.mu.Unlock()
	v.mu.Lock()
	v.freed = p.wake
	v.mu.Unlock()
	claimed, complete := make(chan []*claim, 1), make(chan *claim, p.limit)
	p.slots, p.removing = make(chan struct{}, maxUnconfirmed), make(chan unconfirmed, maxUnconfirmed)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var claiming, confirming sync.WaitGroup
	claiming.Go(func() {
		defer close(claimed)
		cancel(p.claim(ctx, v, claimed))
	})
	var unread []*claim
	claiming.Go(func() {
		defer close(complete)
		var err error
		if unread, err = p.complete(ctx, v, claimed, complete); err != nil {
			cancel(err)
		}
	})
	confirming.Go(func() { p.confirm(cancel) })
	unreceived := p.pass(ctx, v, complete)
	cancel(context.Canceled)
	claiming.Wait()
	for cl := range complete {
		unreceived = append(unreceived, cl)
	}
	p.c.giveBack(append(unreceived, unread...))
	close(p.removing)
	confirming.Wait()
	if err := s.Err(); err != nil {
		p.c.mu.Lock()
		p.c.former = append(p.c.former, s.ID())
		p.c.mu.Unlock()
		for _, m := range p.c.unsettled.ofSession(s) {
			p.c.unsettled.forget(m) // others may have them by now
		}
		return lossOf(err)
	}
	return context.Cause(ctx)
}

// complete reads the data of claimed messages, if claim has not read it, and passes
// the messages on. It returns the claims that it did not read because ctx has ended,
// or the first error.
func (p *pump) complete(ctx context.Context, v *queueView, claimed <-chan []*claim, complete chan<- *claim) (unread []*claim, first error) {
	for claims := range claimed {
		if ctx.Err() != nil || first != nil {
			unread = append(unread, claims...)
			continue
		}
		found, gone, err := v.complete(ctx, claims)
		if err != nil {
			first = err
			unread = append(unread, claims...)
			continue
		}
		p.c.drop(gone)
		size := 0
		for _, cl := range found {
			size += len(cl.data)
		}
		p.mu.Lock()
		p.waiting -= len(gone)
		p.bytes += size
		p.mu.Unlock()
		p.wake()
		if len(gone) > 0 {
			v.notify() // its share has changed
		}
		for _, cl := range found {
			if p.c.pending.resolve(cl.messageRef, cl.czxid) {
				p.received(v, cl)
				if !p.reserve(ctx) {
					p.c.pending.record(cl)
					unread = append(unread, cl)
					continue
				}
				p.startRemoval(cl)
				continue
			}
			complete <- cl
		}
	}
	return unread, first
}

// pass hands claimed messages to the receiver, until ctx ends. It returns the
// messages that it could not hand over.
func (p *pump) pass(ctx context.Context, v *queueView, claimed <-chan *claim) []*claim {
	for {
		var cl *claim
		select {
		case cl = <-claimed:
		default:
			p.mu.Lock()
			p.starved = true
			p.mu.Unlock()
			p.wake()
			select {
			case cl = <-claimed:
			case <-ctx.Done():
			}
		}
		if cl == nil {
			return nil
		}
		// ctx ends a little later than the session, and others may have the message
		// as soon as that has ended.
		if ctx.Err() != nil || v.s.Err() != nil || !p.deliver(ctx, cl) {
			return []*claim{cl}
		}
		p.received(v, cl)
	}
}

// received notes that a message does not wait any more.
func (p *pump) received(v *queueView, cl *claim) {
	p.mu.Lock()
	p.waiting--
	p.bytes -= len(cl.data)
	cl.data = nil
	p.mu.Unlock()
	p.wake()
	v.notify() // its share has changed
}

func (p *pump) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// reserve waits until there may be one more unconfirmed message.
func (p *pump) reserve(ctx context.Context) bool {
	select {
	case p.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pump) unreserve() { <-p.slots }

// startRemoval begins to remove a message that was received; confirm learns what
// comes of it.
func (p *pump) startRemoval(cl *claim) {
	p.c.pending.record(cl)
	if cl.partition.mayBeRecreated() {
		// The message of this name may be another one by now: settle is to look by the czxid.
		e := &entry{done: make(chan struct{}), err: zk.ErrNoNode}
		close(e.done)
		p.removing <- unconfirmed{cl, e}
		return
	}
	p.removing <- unconfirmed{cl, p.c.q.removals.startOne(cl.view.s, cl.removal())}
}

func (p *pump) deliverBytes(ctx context.Context, cl *claim) bool {
	if !p.reserve(ctx) {
		return false
	}
	select {
	case p.c.bytes <- cl.data:
		p.c.q.observeDelivery(cl.data)
		p.startRemoval(cl)
		return true
	case <-ctx.Done():
	case <-cl.view.s.Done():
	}
	p.unreserve()
	return false
}

func (p *pump) deliverMessage(ctx context.Context, cl *claim) bool {
	msg := newMessage(p.c, cl)
	p.c.unsettled.add(msg)
	select {
	case p.c.messages <- msg:
		p.c.q.observeDelivery(cl.data)
		return true
	case <-ctx.Done():
	case <-cl.view.s.Done():
	}
	p.c.unsettled.forget(msg)
	return false
}

// confirm waits for the outcomes of removals. If messages cannot be removed, it ends
// the shift: otherwise all messages would be delivered and none would be removed.
func (p *pump) confirm(end context.CancelCauseFunc) {
	for r := range p.removing {
		if err := p.c.settle(r.claim, r.entry); err != nil {
			end(err)
		}
		p.unreserve()
	}
}
