package zksync

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// maxPause bounds the wait of a consumer that tried to claim the same messages as
// other consumers.
const maxPause = 100 * time.Millisecond

// claimLoop claims messages as there is room for them.
func (p *pump) claimLoop(ctx context.Context, v *queueView, claimed chan<- []*claim) error {
	stale := 0   // messages in a row that others had removed
	refused := 0 // times in a row that others were faster
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
			// A consumer that shares a long list with many others thus finds out
			// quickly how far the others are.
			return min(fair+stale, maxClaims, max(fair, v.maxReadLocked()))
		}, true, func() {})
		if err != nil {
			return err
		}
		// Close waits for the answer: otherwise it would not know which claims to
		// give back.
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
		// All consumers try to claim the same messages, and one of them got these. If
		// all tried again at once, the same would happen with the next messages.
		refused = min(refused+1, 6)
		longest := min(time.Since(began)<<refused, maxPause)
		if err := pause(ctx, time.Duration(rnd.Int64N(int64(longest)+1))); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
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

// share returns how many messages to claim so that all consumers have equally many
// unreceived messages, if there are not enough for all.
func (p *pump) share(room int) quota {
	return func(waiting, peers int) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		fair := (waiting+p.waiting+peers-1)/peers - p.waiting
		return min(room, maxClaims, fair)
	}
}

// waitForRoom waits until there is room for a good part of the window, and says for how
// many messages there is.
func (p *pump) waitForRoom(ctx context.Context, v *queueView) (int, error) {
	for {
		notified := v.load.subscribe()
		free := v.load.free() / v.claimBytes
		p.mu.Lock()
		if p.receiverWaited && p.windowFull {
			p.window = min(2*p.window, p.limit)
		}
		p.receiverWaited = false
		// Messages that were received and are not settled leave less of the limit to
		// messages that wait for the receiver.
		unsettled := v.unsettledCount()
		window := min(p.window, p.limit-(unsettled-p.waiting))
		room := window - p.waiting
		if p.waitingBytes >= prefetchBytes {
			room = 0
		}
		if room > free {
			// A value that has no claim may always have one.
			room, window = max(free, min(1, 1-unsettled)), 1
		}
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
