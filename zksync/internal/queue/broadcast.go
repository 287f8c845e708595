package queue

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A broadcast wakes all goroutines that wait for it.
type broadcast struct {
	mu       sync.Mutex
	notified chan struct{}
}

// subscribe returns a channel that is closed by the next notify. Call subscribe
// before you check the condition that you wait for.
func (b *broadcast) subscribe() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notified == nil {
		b.notified = make(chan struct{})
	}
	return b.notified
}

// notify closes the channel of all subscribers. It does not block.
func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notified != nil {
		close(b.notified)
		b.notified = nil
	}
}

// wait waits until ready reports true. It calls ready at once, and after each notify.
func (b *broadcast) wait(ctx context.Context, ready func() bool) error {
	for {
		// Before the look, so that a notify right after it ends the wait.
		notified := b.subscribe()
		if ready() {
			return nil
		}
		select {
		case <-notified:
		case <-ctx.Done():
			return session.Cancelled(ctx)
		}
	}
}
