package zksync

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
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

	mu             sync.Mutex
	window         int
	waiting        int  // claimed and not received
	waitingBytes   int  // of those
	receiverWaited bool // the receiver has waited
	windowFull     bool // the last claims were as many as there was room for
	wakeUps        chan struct{}

	slots    chan struct{} // taken by unconfirmed messages
	removing chan unconfirmed
}

// An unconfirmed message was received and is being removed.
type unconfirmed struct {
	*claim
	*commit.Entry
}

// consume delivers under one session after another, and returns why it stopped.
func (p *pump) consume() error {
	err := p.c.q.m.Do(p.c.ctx, p.consumeSession)
	if p.c.ctx.Err() != nil {
		return ErrQueueClosed
	}
	return err
}

// consumeSession delivers for as long as a session lasts.
func (p *pump) consumeSession(ctx context.Context, s *session.Session) error {
	v := p.c.viewOf(s)
	registration, err := v.register(ctx)
	if err != nil {
		return err
	}
	defer v.deregister(registration)
	if err := v.waitForLostSessions(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.window, p.waiting, p.waitingBytes, p.receiverWaited, p.windowFull = min(firstPrefetch, p.limit), 0, 0, false, false
	p.mu.Unlock()
	v.mu.Lock()
	v.onRelease = p.wake
	v.mu.Unlock()
	claimed, complete := make(chan []*claim, 1), make(chan *claim, p.limit)
	p.slots, p.removing = make(chan struct{}, maxUnconfirmed), make(chan unconfirmed, maxUnconfirmed)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var claiming, confirming sync.WaitGroup
	claiming.Go(func() {
		defer close(claimed)
		cancel(p.claimLoop(ctx, v, claimed))
	})
	var unread []*claim
	claiming.Go(func() {
		defer close(complete)
		var err error
		if unread, err = p.readLoop(ctx, v, claimed, complete); err != nil {
			cancel(err)
		}
	})
	confirming.Go(func() { p.confirmLoop(cancel) })
	unreceived := p.deliverLoop(ctx, v, complete)
	cancel(context.Canceled)
	claiming.Wait()
	for cl := range complete {
		unreceived = append(unreceived, cl)
	}
	p.c.releaseClaims(append(unreceived, unread...))
	close(p.removing)
	confirming.Wait()
	if err := s.Err(); err != nil {
		p.c.mu.Lock()
		p.c.lostSessions = append(p.c.lostSessions, s.ID())
		p.c.mu.Unlock()
		for _, m := range p.c.unsettled.ofSession(s) {
			p.c.unsettled.forget(m) // others may have them by now
		}
		return znode.LossOf(err)
	}
	return context.Cause(ctx)
}

// readLoop reads the data of claimed messages, if claim has not read it, and passes
// the messages on. It returns the claims that it did not read because ctx has ended,
// or the first error.
func (p *pump) readLoop(ctx context.Context, v *queueView, claimed <-chan []*claim, complete chan<- *claim) (unread []*claim, first error) {
	for claims := range claimed {
		if ctx.Err() != nil || first != nil {
			unread = append(unread, claims...)
			continue
		}
		found, gone, err := v.readClaimed(ctx, claims)
		if err != nil {
			first = err
			unread = append(unread, claims...)
			continue
		}
		p.c.releaseAbsent(gone)
		size := 0
		for _, cl := range found {
			size += len(cl.data)
		}
		p.mu.Lock()
		p.waiting -= len(gone)
		p.waitingBytes += size
		p.mu.Unlock()
		p.wake()
		if len(gone) > 0 {
			v.notify() // its share has changed
		}
		for _, cl := range found {
			if p.c.pending.resolve(cl.messageRef, cl.czxid) {
				p.markReceived(v, cl)
				if !p.reserveSlot(ctx) {
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

// deliverLoop hands claimed messages to the receiver, until ctx ends. It returns the
// messages that it could not hand over.
func (p *pump) deliverLoop(ctx context.Context, v *queueView, claimed <-chan *claim) []*claim {
	for {
		var cl *claim
		select {
		case cl = <-claimed:
		default:
			p.mu.Lock()
			p.receiverWaited = true
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
		p.markReceived(v, cl)
	}
}

// markReceived notes that a message does not wait any more.
func (p *pump) markReceived(v *queueView, cl *claim) {
	p.mu.Lock()
	p.waiting--
	p.waitingBytes -= len(cl.data)
	cl.data = nil
	p.mu.Unlock()
	p.wake()
	v.notify() // its share has changed
}

func (p *pump) wake() {
	select {
	case p.wakeUps <- struct{}{}:
	default:
	}
}

// reserveSlot waits until there may be one more unconfirmed message.
func (p *pump) reserveSlot(ctx context.Context) bool {
	select {
	case p.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pump) releaseSlot() { <-p.slots }

// startRemoval begins to remove a message that was received; confirmLoop waits for
// the outcome.
func (p *pump) startRemoval(cl *claim) {
	p.c.pending.record(cl)
	if cl.partition.mayBeRecreated() {
		// The message of this name may be another one by now: confirmRemoval compares the czxid.
		p.removing <- unconfirmed{cl, commit.Finished(zk.ErrNoNode)}
		return
	}
	p.removing <- unconfirmed{cl, p.c.q.removals.StartOne(cl.view.s, cl.removeTx())}
}

func (p *pump) deliverBytes(ctx context.Context, cl *claim) bool {
	if !p.reserveSlot(ctx) {
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
	p.releaseSlot()
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

// confirmLoop waits for the outcomes of removals. If messages cannot be removed, it ends
// the shift: otherwise all messages would be delivered and none would be removed.
func (p *pump) confirmLoop(end context.CancelCauseFunc) {
	for r := range p.removing {
		if err := p.c.confirmRemoval(r.claim, r.Entry); err != nil {
			end(err)
		}
		p.releaseSlot()
	}
}
