package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A TryLock, TryRLock or TryAcquire whose ctx ends while its znode is still in line fails with the error of ctx.
func TestTryWhoseZnodeStaysTooLong(t *testing.T) {
	for _, name := range []string{"TryLock", "TryRLock", "TryAcquire"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m, other := srv.Connect(t), srv.Connect(t)
				var try func(ctx context.Context) (bool, error)
				switch name {
				case "TryLock":
					lock(t, zksync.NewMutex(other, path))
					try = zksync.NewMutex(m, path).TryLock
				case "TryRLock":
					must(t, zksync.NewRWMutex(other, path).Lock(t.Context()))
					try = zksync.NewRWMutex(m, path).TryRLock
				case "TryAcquire":
					must(t, zksync.NewSemaphore(other, path, 1).Acquire(t.Context(), 1))
					s := zksync.NewSemaphore(m, path, 1)
					try = func(ctx context.Context) (bool, error) { return s.TryAcquire(ctx, 1) }
				}
				srv.Inject(zkserver.Fault{Session: live(t, m).ID(), Op: zkserver.OpDelete, Times: -1, Do: zkserver.Error(-127)})
				ok, err := try(within(t, 2*time.Second))
				if ok || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, %v, want the end of ctx", ok, err)
				}
			})
		})
	}
}

// A Run whose ctx ends during the resignation returns the result of the work, which had returned while its context
// lived.
func TestRunWhoseContextEndsDuringTheResignation(t *testing.T) {
	for _, result := range []error{nil, errors.New("the result")} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				e := zksync.NewElection(srv.Connect(t), path)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Do: zksynctest.Delay(time.Second)})
				done := background(ctx, func(ctx context.Context) error {
					return e.Run(ctx, func(context.Context) error { return result })
				})
				synctest.Wait()
				cancel()
				if err := <-done; err != result {
					t.Errorf("Run: %v, want %v", err, result)
				}
			})
		})
	}
}
