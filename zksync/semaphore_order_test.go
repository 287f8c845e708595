package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A request for units that is cancelled leaves its position in line to the next goroutine that shares the value, however
// long it has waited.
func TestCancelledRequestLeavesItsPosition(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder := zksync.NewSemaphore(srv.Connect(t), path, 1)
		must(t, holder.Acquire(t.Context(), 1))
		shared, other := zksync.NewSemaphore(srv.Connect(t), path, 1), zksync.NewSemaphore(srv.Connect(t), path, 1)
		order := make(chan string, 2)
		acquire := func(ctx context.Context, name string, s *zksync.Semaphore) <-chan error {
			done := background(ctx, func(ctx context.Context) error {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
				order <- name
				return s.Release(1)
			})
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := acquire(ctx, "first", shared)
		second := acquire(t.Context(), "second", shared)
		third := acquire(t.Context(), "third", other)
		time.Sleep(time.Minute)
		cancel()
		<-first
		synctest.Wait()
		must(t, holder.Release(1))
		must(t, <-second)
		must(t, <-third)
		if got := <-order; got != "second" {
			t.Errorf("%s got a unit before second, which came earlier", got)
		}
	})
}
