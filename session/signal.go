package session

import (
	"context"
	"time"
)

// signal puts a value into a channel with a buffer of one, unless the buffer is full.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	// The value in the buffer will wake the receiver, which then finds this change as well.
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

// maxUnseen is the largest number of values that push leaves for a reader: a kept value
// and a later value.
const maxUnseen = 2

// push puts next into a reader's channel, which has a buffer of maxUnseen. It replaces a
// value that was not received, except a kept value, which stays once. A reader that receives
// meanwhile may get the value behind the kept value first. Only one goroutine at a time may
// push into a channel.
func push[T comparable](ch chan T, next, kept T) {
	// No other goroutine pushes meanwhile, so the sends below find room and do not block.
	keep := false
	for len(ch) > 0 {
		select {
		case old := <-ch:
			keep = keep || old == kept
		default: // the reader has received the value meanwhile
		}
	}
	if keep && next != kept {
		ch <- kept
	}
	ch <- next
}
