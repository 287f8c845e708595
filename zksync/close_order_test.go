package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Manager.Close ends the contexts of all holds before any other contender can hold. To see this test fail, have
// session.endContext call the functions of NotifyEnd in goroutines.
func TestCloseEndsHeldContextsFirst(t *testing.T) {
	t.Parallel()
	const each, rounds = 40, 5
	calls := []func(ctx context.Context, m *session.Manager, path string) (context.Context, error){
		func(ctx context.Context, m *session.Manager, path string) (context.Context, error) {
			return zksync.NewMutex(m, path+"/mutex").LockContext(ctx)
		},
		func(ctx context.Context, m *session.Manager, path string) (context.Context, error) {
			return zksync.NewRWMutex(m, path+"/rwmutex").LockContext(ctx)
		},
		func(ctx context.Context, m *session.Manager, path string) (context.Context, error) {
			return zksync.NewSemaphore(m, path+"/semaphore", 1).AcquireContext(ctx, 1)
		},
		func(ctx context.Context, m *session.Manager, path string) (context.Context, error) {
			return zksync.NewElection(m, path+"/election").Campaign(ctx)
		},
	}
	srv := zksynctest.Start(t)
	for round := range rounds {
		m, next := srv.Connect(t), srv.Connect(t)
		overlaps := make(chan bool)
		for i := range each {
			for _, call := range calls {
				path := fmt.Sprintf("/round-%d/%d", round, i)
				held, err := call(t.Context(), m, path)
				must(t, err)
				go func() {
					_, err := call(t.Context(), next, path)
					overlaps <- err == nil && held.Err() == nil
				}()
			}
		}
		waiting := live(t, next).ID()
		eventually(t, "all others wait", func() bool {
			for _, info := range srv.Sessions() {
				if info.ID == waiting {
					return len(info.Ephemerals) == each*len(calls)
				}
			}
			return false
		})
		m.Close()
		n := 0
		for range each * len(calls) {
			if <-overlaps {
				n++
			}
		}
		if n > 0 {
			t.Errorf("round %d: %d of %d held contexts lived when the next one held", round, n, each*len(calls))
		}
		next.Close()
	}
}

// eventually waits until something is true, in real time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
