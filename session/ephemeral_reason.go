package session

import (
	"context"
	"fmt"
)

// noteFailure notes why a request of the Ephemeral is sent again, nil if it is not any more.
func (e *Ephemeral) noteFailure(reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = reason
}

// cancelled returns the error of a call whose ctx has ended while the call waited for the
// znode.
func (e *Ephemeral) cancelled(ctx context.Context) error {
	if reason := e.reason(); reason != nil {
		return CancelledWaiting(ctx, reason)
	}
	return Cancelled(ctx)
}

// reason returns what the goroutine of the Ephemeral waits for, nil if that is not known.
func (e *Ephemeral) reason() error {
	e.mu.Lock()
	obstacle, failure := e.err, e.failure
	e.mu.Unlock()
	if op, ok := obstacle.(*Error); ok && op.Path == e.asked {
		obstacle = op.Err // the caller adds the operation and the path
	}
	switch connected := e.m.State() == Connected; {
	case connected && obstacle != nil:
		return fmt.Errorf("waiting: %w", obstacle)
	case connected && failure != nil:
		return fmt.Errorf("waiting %w", failure)
	}
	return e.m.trouble()
}
