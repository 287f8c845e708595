package zksync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Each of the goroutines that share a value and wait behind another client gets the reason for its wait, also the
// goroutine whose ctx ends at the moment at which it gets its turn. Goroutines that
// wait for a semaphore are healthy, and get no advice about locks. Breaks if afterTurn returns err.
func TestASharedWaitSaysItsReason(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m, other := srv.Connect(t), srv.Connect(t)
			must(t, zksync.NewMutex(other, path).Lock(t.Context()))
			must(t, zksync.NewSemaphore(other, path+"/s", 1).Acquire(t.Context(), 1))
			sem := zksync.NewSemaphore(m, path+"/s", 1)
			for what, wait := range map[string]func(context.Context) error{
				"Lock":    zksync.NewMutex(m, path).Lock,
				"Acquire": func(ctx context.Context) error { return sem.Acquire(ctx, 1) },
			} {
				errs := make(chan error)
				for range 6 {
					go func() { errs <- wait(within(t, 5*time.Second)) }()
				}
				for range 6 {
					if err := <-errs; !strings.Contains(err.Error(), ": waiting ") {
						t.Errorf("%s: %v, want the reason for the wait", what, err)
					} else if what == "Acquire" && strings.Contains(err.Error(), "reentrant") {
						t.Errorf("%s: %v, want no advice about locks", what, err)
					}
				}
			}
		})
	}
}
