package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Contenders returns although the holders of the lock stay for less than a round trip.
func TestContendersOfABusyLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		link := srv.NewLink(t)
		far := link.Connect(t, session.WithTimeout(20*time.Second))
		live(t, far)
		link.Delay(5 * time.Millisecond)
		busy, stop := context.WithCancel(t.Context())
		var done []<-chan error
		for range 2 {
			mu := zksync.NewMutex(srv.Connect(t), path)
			done = append(done, started(busy, func(ctx context.Context) error {
				for ctx.Err() == nil {
					if mu.Lock(ctx) == nil {
						time.Sleep(2 * time.Millisecond)
						unlock(t, mu)
					}
				}
				return nil
			}))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := zksync.NewMutex(far, path).Contenders(ctx); err != nil {
			t.Error("Contenders of a busy lock:", err)
		}
		stop()
		for _, d := range done {
			must(t, <-d)
		}
	})
}

// Contenders of a Semaphore lists a contender once that is exchanged for its units during the call, and keeps the
// contenders of the same session that still wait.
func TestContendersOfASemaphoreAreListedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m, theirs := srv.Connect(t), srv.Connect(t)
		of := func(m *session.Manager, id string) *zksync.Semaphore {
			return zksync.NewSemaphore(m, "/s", 2, zksync.WithID(id))
		}
		first := of(srv.Connect(t), "a")
		must(t, first.Acquire(t.Context(), 2))
		second := started(t.Context(), func(ctx context.Context) error { return of(theirs, "b").Acquire(ctx, 2) })
		third := started(t.Context(), func(ctx context.Context) error { return of(theirs, "c").Acquire(ctx, 2) })
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/s/leases", Op: zkserver.OpGetChildren2, Do: zksynctest.Call(func() {
			must(t, first.Release(2))
			must(t, <-second)
		})})
		all, err := of(m, "d").Contenders(t.Context())
		must(t, err)
		if got, want := shown(all), "b unit holds, b unit holds, c exclusive waits"; got != want {
			t.Errorf("contenders: %s; want %s", got, want)
		}
		pending(t, "Acquire of the third", third)
	})
}
