package line

import (
	"container/list"
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A fairMutex is a mutex that goroutines get in the order of their calls of lock.
type fairMutex struct {
	mu     sync.Mutex
	locked bool
	queue  list.List // of chan struct{}, each closed when its goroutine has the mutex
}

// lock waits for the mutex. It fails when ctx or closed ends first. If ctx ends at the
// moment at which the caller gets the mutex, lock may return nil, and the caller must
// check ctx. lock calls begin if it has to wait.
func (t *fairMutex) lock(ctx context.Context, closed <-chan struct{}, begin func() *session.Wait) error {
	t.mu.Lock()
	if !t.locked {
		t.locked = true
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
		err = session.ErrClosed
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

// length returns the number of goroutines that wait.
func (t *fairMutex) length() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queue.Len()
}

// tryLock locks the mutex if no goroutine has it, and reports whether it did.
func (t *fairMutex) tryLock() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.locked {
		return false
	}
	t.locked = true
	return true
}

// handOver gives the mutex to the next goroutine that waits. If no goroutine waits, it
// returns false, and the caller keeps the mutex.
func (t *fairMutex) handOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.queue.Front()
	if first == nil {
		return false
	}
	close(t.queue.Remove(first).(chan struct{}))
	return true
}

// unlock gives the mutex to the next goroutine that waits, if there is one.
func (t *fairMutex) unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.queue.Front(); first != nil {
		close(t.queue.Remove(first).(chan struct{}))
		return
	}
	t.locked = false
}
