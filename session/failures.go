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
	what     string // what has failed

	wait *Wait // of the goroutine that repeats the operation alone

	mu    sync.Mutex
	times int
	last  error
}

// note notes a failure.
func (f *failures) note(err error) {
	f.mu.Lock()
	f.times++
	f.last = err
	f.mu.Unlock()
	if f.wait == nil {
		f.wait = f.m.StartWait(f.op, f.path, f.reason)
	}
}

func (f *failures) reason(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Errorf("for %s that has failed %d times, at last: %w", f.what, f.times, f.last)
}

// end ends the Wait of an operation that ends with err, and returns err. An err that says that ctx has
// ended, and no reason, gets the reason. f is nil if nothing has failed.
func (f *failures) end(ctx context.Context, err error) error {
	if f == nil {
		return err
	}
	if f.wait != nil && ctx.Err() != nil && ClassOf(err) == ClassCancelled && WaitReason(err) == nil {
		return f.wait.Cancelled(ctx)
	}
	f.wait.Stop()
	return err
}
