package zksync_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A meddler is a context that calls do at the nth time that somebody asks it for a value, and so while others are
// derived from it.
type meddler struct {
	context.Context
	left *atomic.Int64
	do   func()
}

func (m meddler) Value(key any) any {
	if m.left.Add(-1) == 0 {
		m.do()
	}
	return m.Context.Value(key)
}

// The context of a Do ends with ErrReleased whenever another goroutine unlocks, also between the grant and the call of the
// function. Otherwise the function would go on beside the next holder.
func TestUnlockWhileADoBegins(t *testing.T) {
	m := zksynctest.Start(t).Connect(t)
	mu, rw := zksync.NewMutex(m, "/mutex"), zksync.NewRWMutex(m, "/rwmutex")
	type calls struct {
		do     func(context.Context, func(context.Context) error) error
		unlock func() error
	}
	for name, calls := range map[string]calls{
		"Mutex": {mu.Do, mu.Unlock}, "writing RWMutex": {rw.Do, rw.Unlock}, "reading RWMutex": {rw.RDo, rw.RUnlock},
	} {
		t.Run(name, func(t *testing.T) {
			began := false
			for nth := int64(1); ; nth++ {
				var unlocked atomic.Bool
				done := make(chan struct{})
				unlock := func() {
					go func() {
						defer close(done)
						unlocked.Store(calls.unlock() == nil)
					}()
					select {
					case <-done:
					case <-time.After(50 * time.Millisecond): // a lock of the package is held, for which Unlock waits
					}
				}
				ctx := meddler{t.Context(), &atomic.Int64{}, unlock}
				ctx.left.Store(nth)
				err := calls.do(ctx, func(held context.Context) error {
					if unlocked.Load() && !errors.Is(context.Cause(held), zksync.ErrReleased) {
						t.Errorf("value %d: Unlock has returned nil, and the context of Do has the cause %v, want ErrReleased", nth, context.Cause(held))
					}
					return nil
				})
				if ctx.left.Load() > 0 {
					break // nobody asks so often
				}
				<-done
				began = true
				if unlocked.Load() != errors.Is(err, zksync.ErrNotHeld) {
					t.Errorf("value %d: Do: %v; unlocked by another goroutine: %v", nth, err, unlocked.Load())
				}
			}
			if !began {
				t.Error("no value was asked for")
			}
		})
	}
}
