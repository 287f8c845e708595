package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The context of a Do or RDo ends before its units or its read lock may belong to another client, also if the same value has
// another hold.
func TestContextOfDoEndsBeforeTheRelease(t *testing.T) {
	// The server deletes the znode at once, and its answer takes two seconds.
	slow := func(srv *zksynctest.Server, dir string) {
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: dir + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Delay(2 * time.Second)})
	}
	// work returns a function for Do that notes the time from its return to the end of its context.
	work := func() (fn func(context.Context) error, late chan time.Duration) {
		late = make(chan time.Duration, 1)
		return func(ctx context.Context) error {
			<-time.After(time.Second) // the work, in the time of the bubble
			returned := time.Now()
			context.AfterFunc(ctx, func() { late <- time.Since(returned) })
			return nil
		}, late
	}
	wantAtOnce := func(t *testing.T, late chan time.Duration) {
		t.Helper()
		if d := <-late; d > 0 {
			t.Errorf("the context ended %v after the work", d)
		}
	}
	t.Run("semaphore", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := zksync.NewSemaphore(srv.Connect(t), sem, 2)
			must(t, s.Acquire(t.Context(), 1))
			slow(srv, semLeases)
			fn, late := work()
			must(t, s.Do(t.Context(), 1, fn))
			wantAtOnce(t, late)
			must(t, s.Release(1))
		})
	})
	t.Run("readers", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			rw := zksync.NewRWMutex(srv.Connect(t), path)
			must(t, rw.RLock(t.Context()))
			<-time.After(time.Second) // later readers do not join the grant of the first one
			slow(srv, path)
			fn, late := work()
			must(t, rw.RDo(t.Context(), fn))
			wantAtOnce(t, late)
			must(t, rw.RUnlock())
		})
	})
}
