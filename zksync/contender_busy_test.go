package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
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
