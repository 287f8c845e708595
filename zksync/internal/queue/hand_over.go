package queue

import (
	"context"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// handOver hands one message to the receiver. It reports false if it was not received.
func (p *stream) handOver(ctx context.Context, v *view, d *Delivery, end context.CancelCauseFunc) bool {
	c := p.c
	if !p.ack {
		v.unsettled.Store(d, nil) // before the receipt: the receiver may settle the message at once
		if p.receive(ctx, d) {
			c.cfg.observeDelivery(d.Data)
			p.trouble.end()
			return true
		}
		v.unsettled.Delete(d)
		return false
	}
	// A slot before the receipt: a received message is removed at once, and no more than
	// maxUnconfirmed messages are delivered again after a crash.
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	// The receiver already has a message whose removal has failed. Remove it without
	// another delivery.
	if !c.removing.has(d.ref.message, d.czxid) {
		if !p.receive(ctx, d) {
			<-p.slots
			return false
		}
		c.cfg.observeDelivery(d.Data)
	}
	c.removing.add(d.ref.message, d.czxid)
	p.removals.Add(1)
	var wait time.Duration
	if p.c.window.expectsClaim() {
		wait = min(2*time.Duration(p.c.window.claimTime.Load()), maxPause)
	}
	d.removeReceived(wait, func(err error) {
		defer p.removals.Done()
		defer func() { <-p.slots }()
		switch class := session.ClassOf(err); {
		case err == nil:
			p.trouble.end()
			c.removing.end(d.ref.message)
		case class == session.ClassRemoved && d.l.usable.Err() != nil:
			// The claim has gone, and not the message.
		case class == session.ClassRemoved:
			c.removing.end(d.ref.message)
		case class == session.ClassNotEmpty, v.s.Err() != nil, c.cleanupCtx.Err() != nil:
		default:
			// This consumer may not remove messages: all of them would be delivered, and none
			// would be removed.
			end(err)
		}
	})
	return true
}
