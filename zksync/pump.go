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

	// prefetchBytes limits the data of the messages that wait for the receiver. A pump
	// that has reached it claims no further message.
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
	window         int  // how many messages may be claimed and not settled at present
	waiting        int  // the number of messages that are claimed and not received
	waitingBytes   int  // the data of these messages
	receiverWaited bool // deliverLoop had no claimed message for the receiver
	windowFull     bool // the last claims were as many as there was room for
	wakeUps        chan struct{}

	slots    chan struct{} // has one element for each unconfirmed message
	removing chan unconfirmed
}

// An unconfirmed message was received and is being removed.
type unconfirmed struct {
	*claim
	*commit.Entry
}

// consume delivers messages under one session after another, and returns why it stopped.
func (p *pump) consume() error {
	err := p.c.q.m.Do(p.c.ctx, p.consumeSession)
	if p.c.ctx.Err() != nil {
		return ErrQueueClosed
	}
	return err
}

// consumeSession delivers messages as long as a session lasts. Its goroutines form a
// pipeline: claimLoop, readLoop, deliverLoop, confirmLoop.
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
	// The messages of the session before were given back, or are lost. A new session
	// begins with a small window, until the receiver shows that it is fast.
	p.mu.Lock()
	p.window, p.waiting, p.waitingBytes, p.receiverWaited, p.windowFull = min(firstPrefetch, p.limit), 0, 0, false, false
	p.mu.Unlock()
	v.mu.Lock()
	v.onRelease = p.wake
	v.mu.Unlock()
	// No more than p.limit messages are claimed and not received, and no more than
	// maxUnconfirmed are unconfirmed. With these buffers readLoop and startRemoval never
	// block, so that the pipeline ends even if the receiver has gone.
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
	// The pipeline stops from its beginning to its end: each stage may still have claims
	// for the next one, and every claim that was not delivered must be given back.
	cancel(context.Canceled)
	claiming.Wait()
	for cl := range complete {
		unreceived = append(unreceived, cl)
	}
	p.c.releaseClaims(append(unreceived, unread...))
	close(p.removing)
	confirming.Wait()
	if err := s.Err(); err != nil {
		// This client may know of the loss before the servers do. Until they end the
		// session, its claims exist: see waitForLostSessions.
		p.c.mu.Lock()
		p.c.lostSessions = append(p.c.lostSessions, s.ID())
		p.c.mu.Unlock()
		for _, m := range p.c.unsettled.ofSession(s) {
			p.c.unsettled.forget(m) // other consumers may have claimed these messages
		}
		return znode.LossOf(err)
	}
	return context.Cause(ctx)
}

// readLoop reads the data of claimed messages, unless claimMessages has read it, and
// sends the messages to deliverLoop. It returns the claims that it did not read because
// ctx has ended, or the first error.
func (p *pump) readLoop(ctx context.Context, v *queueView, claimed <-chan []*claim, complete chan<- *claim) (unread []*claim, first error) {
	for claims := range claimed {
		if ctx.Err() != nil || first != nil {
			// Receive until claimLoop has ended: it may be blocked, and its claims must be
			// given back.
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
		// The share of this consumer in the waiting messages has grown. claimLoop may wait
		// for an event, and none will come.
		if len(gone) > 0 {
			v.notify()
		}
		for _, cl := range found {
			// The receiver already has this message: its removal had failed, and the
			// message waited again. Remove the message without another delivery.
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

// deliverLoop delivers claimed messages to the receiver, until ctx ends. It returns the
// messages that it could not deliver.
func (p *pump) deliverLoop(ctx context.Context, v *queueView, claimed <-chan *claim) []*claim {
	for {
		var cl *claim
		select {
		case cl = <-claimed:
		default:
			// The receiver is faster than the pump: waitForRoom may enlarge the window.
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
		// ctx ends a little later than the session, and other consumers can claim the
		// message as soon as the session has ended.
		if ctx.Err() != nil || v.s.Err() != nil || !p.deliver(ctx, cl) {
			return []*claim{cl}
		}
		p.markReceived(v, cl)
	}
}

// markReceived notes that a message does not wait for the receiver any more.
func (p *pump) markReceived(v *queueView, cl *claim) {
	p.mu.Lock()
	p.waiting--
	p.waitingBytes -= len(cl.data)
	cl.data = nil
	p.mu.Unlock()
	p.wake()
	v.notify() // claimLoop may wait for its share, which has grown
}

// wake makes waitForRoom check again.
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

// startRemoval starts to remove a received message, and sends it to confirmLoop.
func (p *pump) startRemoval(cl *claim) {
	// If the outcome stays unknown, the message may wait again, and must not be delivered
	// again.
	p.c.pending.record(cl)
	if cl.partition.mayBeRecreated() {
		// The message of this name may be another one by now, which a removal by name
		// would delete. NoNode makes confirmRemoval compare the czxids.
		p.removing <- unconfirmed{cl, commit.Finished(zk.ErrNoNode)}
		return
	}
	p.removing <- unconfirmed{cl, p.c.q.removals.StartOne(cl.view.s, cl.removeTx())}
}

// deliverBytes delivers a message of Chan, and starts its removal.
func (p *pump) deliverBytes(ctx context.Context, cl *claim) bool {
	// Reserve before the receipt: a received message is removed at once, and no more than
	// maxUnconfirmed messages are delivered again after a crash.
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

// deliverMessage delivers a message of Messages.
func (p *pump) deliverMessage(ctx context.Context, cl *claim) bool {
	msg := newMessage(p.c, cl)
	// Add before the receipt: the receiver may call Ack before this goroutine goes on.
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

// confirmLoop waits for the outcomes of removals. If messages cannot be removed, it calls
// end: otherwise all messages would be delivered and none would be removed.
func (p *pump) confirmLoop(end context.CancelCauseFunc) {
	for r := range p.removing {
		if err := p.c.confirmRemoval(r.claim, r.Entry); err != nil {
			end(err)
		}
		p.releaseSlot()
	}
}
