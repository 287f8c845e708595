package session

import (
	"context"
	"fmt"
	"sync"
)

// failures is the Wait of an operation that is repeated while it fails. The Wait begins with the first
// failure.
type failures struct {
	m        *shared
	op, path string
	what     string             // what has failed
	tell     func(reason error) // see withFailures; may be nil

	wait *Wait // of the goroutine that repeats the operation alone

	mu    sync.Mutex
	times int
	last  error
}

type tellKey struct{}

// withFailures returns a ctx whose operations call tell with the reason of each repetition, and with nil
// when the repetition ends. It serves a goroutine that works for callers with another ctx.
func withFailures(ctx context.Context, tell func(reason error)) context.Context {
	return context.WithValue(ctx, tellKey{}, tell)
}

func newFailures(ctx context.Context, m *shared, op, path, what string) *failures {
	tell, _ := ctx.Value(tellKey{}).(func(error))
	return &failures{m: m, op: op, path: path, what: what, tell: tell}
}

// orNew returns f, or new failures if f is nil: most operations never fail, and need none.
func (f *failures) orNew(ctx context.Context, m *shared, op, path string) *failures {
	if f == nil {
		f = newFailures(ctx, m, op, path, "a request")
	}
	return f
}

// note notes a failure.
func (f *failures) note(err error) {
	f.mu.Lock()
	if f.wait == nil {
		f.times = 0
	}
	f.times++
	f.last = err
	f.mu.Unlock()
	if f.wait == nil {
		f.wait = f.m.StartWait(f.op, f.path, f.reason)
	}
	if f.tell != nil {
		f.tell(f.reason(context.Background()))
	}
}

func (f *failures) reason(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Errorf("for %s that has failed %d times, at last: %w", f.what, f.times, f.last)
}

// end ends the Wait of an operation that ends with err, and returns err. An err that says that ctx has
// ended, and no reason, gets the reason. f is nil if nothing has failed. The next failure begins another
// Wait.
func (f *failures) end(ctx context.Context, err error) error {
	if f == nil || f.wait == nil {
		return err
	}
	if ctx.Err() != nil && ClassOf(err) == ClassCancelled && WaitReason(err) == nil {
		err = f.wait.Cancelled(ctx)
	}
	f.wait.Stop()
	f.wait = nil
	if f.tell != nil {
		f.tell(nil)
	}
	return err
}
