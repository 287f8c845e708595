package session

import (
	"context"
	"time"
)

// signal puts a value into a channel with a buffer of one, unless the buffer is full.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// broadcast wakes all receivers of a channel: it closes and replaces the channel.
func broadcast(ch *chan struct{}) {
	close(*ch)
	*ch = make(chan struct{})
}

// isClosed reports whether a channel is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// sleep returns nil after d. It returns an error when ctx ends, and the cause of end when
// end ends.
func sleep(ctx context.Context, d time.Duration, end context.Context) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return Cancelled(ctx)
	case <-end.Done():
		return context.Cause(end)
	}
}
