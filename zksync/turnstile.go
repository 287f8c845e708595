package zksync

import (
	"container/list"
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A turnstile lets one goroutine enter at a time, in the order of their calls.
type turnstile struct {
	mu     sync.Mutex
	inside bool
	queue  list.List // of chan struct{}, closed when it is that one's turn
}

// enter waits for its turn. It fails when ctx or closed ends first. If both happen at
// the same time, enter enters, and the caller must check ctx. enter calls begin if it
// has to wait.
func (t *turnstile) enter(ctx context.Context, closed <-chan struct{}, begin func() *session.Wait) error {
	t.mu.Lock()
	if !t.inside {
		t.inside = true
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	e := t.queue.PushBack(turn)
	t.mu.Unlock()
	wait := begin()
	defer wait.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = wait.Cancelled(ctx)
	case <-closed:
		err = ErrClosed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn:
		return nil
	default:
		t.queue.Remove(e)
		return err
	}
}

// length returns how many goroutines wait.
func (t *turnstile) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.Len()
}

// tryEnter enters if no goroutine is inside.
func (t *turnstile) tryEnter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside {
		return false
	}
	t.inside = true
	return true
}

// handOver lets the next one in instead of the caller, who stays inside if
// there is none.
func (t *turnstile) handOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.queue.Front()
	if first == nil {
		return false
	}
	close(t.queue.Remove(first).(chan struct{}))
	return true
}

// leave lets the next one in, if there is one.
func (t *turnstile) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.queue.Front(); first != nil {
		close(t.queue.Remove(first).(chan struct{}))
		return
	}
	t.inside = false
}
