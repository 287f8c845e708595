package zksync

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// maxPause limits the pause of a consumer that tried to claim the same messages as
// other consumers.
const maxPause = 100 * time.Millisecond

// claimLoop claims messages whenever there is room for them, and sends them to readLoop.
func (p *pump) claimLoop(ctx context.Context, v *queueView, claimed chan<- []*claim) error {
	stale := 0   // how many messages in a row other consumers had removed
	refused := 0 // how many times in a row other consumers were faster
	rnd := rand.New(rand.NewPCG(uint64(v.s.ID()), 0))
	for {
		room, err := p.waitForRoom(ctx, v)
		if err != nil {
			return err
		}
		most := min(room, maxClaims, v.maxRead())
		fair := 0
		refs, err := v.next(ctx, func(waiting, peers int) int {
			if fair = p.share(most)(waiting, peers); fair <= 0 {
				return fair
			}
			// Many consumers drain one list. A consumer with an old list must find the first
			// message that the others have not removed: the more messages were gone, the
			// more it asks for.
			return min(fair+stale, maxClaims, max(fair, v.maxReadLocked()))
		}, true, func() {})
		if err != nil {
			return err
		}
		// Not under ctx: Close waits for the answer, because it would not know otherwise
		// which claims to give back.
		began := time.Now()
		claims, gone, err := v.claimMessages(p.c.cleanupCtx, refs, fair)
		if err != nil {
			return err
		}
		if stale += gone; len(claims) > 0 {
			stale = 0
		}
		p.mu.Lock()
		p.windowFull = len(refs) >= most
		p.waiting += len(claims)
		p.mu.Unlock()
		claimed <- claims
		if len(claims) > 0 || gone == len(refs) {
			refused = 0
			continue
		}
		// All consumers try to claim the same messages, and one of them has claimed these.
		// If all tried again at once, the same would happen with the next messages. The
		// random pause doubles with each failure, from the time that a request takes.
		refused = min(refused+1, 6)
		longest := min(time.Since(began)<<refused, maxPause)
		if err := pause(ctx, time.Duration(rnd.Int64N(int64(longest)+1))); err != nil {
			return err
		}
	}
}

// pause waits for a time.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 { // no timer: see queueView.waitUntil
		if ctx.Err() != nil {
			return session.Cancelled(ctx)
		}
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// share returns a quota that gives each consumer the same number of unreceived messages
// if there are not enough messages for all consumers.
func (p *pump) share(room int) quota {
	return func(waiting, peers int) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		// waiting does not include the messages that this consumer has claimed.
		fair := (waiting+p.waiting+peers-1)/peers - p.waiting
		return min(room, maxClaims, fair)
	}
}

// waitForRoom waits until there is room for at least half of the window, and returns the
// number of messages that there is room for.
func (p *pump) waitForRoom(ctx context.Context, v *queueView) (int, error) {
	for {
		notified := v.load.subscribe() // before the check, so that no release is missed
		free := v.load.free() / v.claimBytes
		p.mu.Lock()
		// A larger window helps only if the queue had more messages than there was room
		// for, and the receiver was ready for them.
		if p.receiverWaited && p.windowFull {
			p.window = min(2*p.window, p.limit)
		}
		p.receiverWaited = false
		// The limit includes the messages that were received and are not settled.
		unsettled := v.unsettledCount()
		window := min(p.window, p.limit-(unsettled-p.waiting))
		room := window - p.waiting
		if p.waitingBytes >= prefetchBytes {
			room = 0
		}
		if room > free {
			// Other values have used up the session's load. A value without a claim may
			// always have one, or it would never deliver anything.
			room, window = max(free, min(1, 1-unsettled)), 1
		}
		// Wait for half of the window: claims of single messages would multiply the
		// transactions.
		enough := room > 0 && room >= (window+1)/2
		p.mu.Unlock()
		if enough {
			return room, nil
		}
		select {
		case <-p.wakeUps:
		case <-notified:
		case <-ctx.Done():
			return 0, session.Cancelled(ctx)
		}
	}
}
