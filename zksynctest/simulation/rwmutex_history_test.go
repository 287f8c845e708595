package simulation_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// Any number of readers or one writer hold an RWMutex at the same time, even when connections and sessions are lost.
func TestRWMutexHistories(t *testing.T) {
	var most, lost atomic.Int64
	troubled(func(t *testing.T, seed uint64, tr trouble, path string, pace time.Duration) {
		var locks []*zksync.RWMutex
		for _, m := range tr.managers {
			locks = append(locks, zksync.NewRWMutex(m, path))
		}
		tr.with(t, seed, pace, func() {
			var reading atomic.Int64
			tr.work(t, seed, pace, func(ctx context.Context, client, manager int, rnd *rand.Rand) error {
				rw := locks[manager]
				stay := time.Duration(rnd.Int64N(int64(pace)))
				switch rnd.IntN(5) {
				case 0:
					return tr.h.hold(client, manager, take{-1}, func() (context.Context, error) { return rw.LockContext(ctx) }, stay, rw.Unlock)
				case 1:
					return tr.writeThenRead(ctx, client, manager, rw, stay)
				}
				defer reading.Add(-1)
				return tr.h.hold(client, manager, take{1}, func() (context.Context, error) {
					held, err := rw.RLockContext(ctx)
					if n := reading.Add(1); err == nil && n > most.Load() {
						most.Store(n)
					}
					return held, err
				}, stay, rw.RUnlock)
			})
		}, path)
		lost.Add(int64(tr.h.lost))
		tr.h.check(t, 1<<20)
	}).everywhere(t, 20)
	if most.Load() < 2 || lost.Load() == 0 {
		t.Errorf("%d readers at most, %d holds lost: this shows nothing", most.Load(), lost.Load())
	}
}

// writeThenRead downgrades a write hold to a read hold, which is one step of the history, and
// releases the read hold.
func (tr trouble) writeThenRead(ctx context.Context, client, manager int, rw *zksync.RWMutex, stay time.Duration) error {
	h := tr.h
	called := h.clock.Add(1)
	if err := rw.Lock(ctx); err != nil {
		return err
	}
	returned := h.clock.Add(1)
	held, err := rw.DowngradeContext(ctx)
	lowered := h.clock.Add(1)
	if err != nil {
		if !h.doubtful(manager, called, returned, err) {
			h.note(client, take{-1}, called, returned)
			h.note(client, give{-1}, h.end(manager, returned, returned), lowered)
		}
		if ctx.Err() != nil {
			return nil
		}
		return withoutLoss(err)
	}
	select {
	case <-held.Done():
	case <-time.After(stay):
	}
	leaving := h.clock.Add(1)
	err = rw.RUnlock()
	gone := h.clock.Add(1)
	if !h.doubtful(manager, called, returned, err) {
		h.note(client, take{-1}, called, returned)
		h.note(client, lower{}, returned, lowered)
		h.note(client, give{1}, h.end(manager, returned, leaving), gone)
	}
	return withoutLoss(err)
}
