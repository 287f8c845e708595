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
func (m *fairMutex) lock(ctx context.Context, closed <-chan struct{}, begin func() *session.Wait) error {
	m.mu.Lock()
	if !m.locked {
		m.locked = true
		m.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	e := m.queue.PushBack(turn)
	m.mu.Unlock()
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
	// Not before wait.Cancelled: it asks for the reason, which calls length.
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-turn:
		// The mutex was handed over before this goroutine could leave the queue. No other
		// goroutine would get it if this one failed now.
		return nil
	default:
		m.queue.Remove(e)
		return err
	}
}

// length returns the number of goroutines that wait.
func (m *fairMutex) length() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.Len()
}

// tryLock locks the mutex if no goroutine has it, and reports whether it did.
func (m *fairMutex) tryLock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked {
		return false
	}
	m.locked = true
	return true
}

// handOver gives the mutex to the next goroutine that waits. If no goroutine waits, it
// returns false, and the caller keeps the mutex.
func (m *fairMutex) handOver() bool { return m.pass(true) }

// unlock gives the mutex to the next waiting goroutine. Without one, the mutex is free.
func (m *fairMutex) unlock() { m.pass(false) }

// pass gives the mutex to the next goroutine that waits. If no goroutine waits, it
// returns false, and sets locked.
func (m *fairMutex) pass(locked bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.queue.Front()
	if first == nil {
		m.locked = locked
		return false
	}
	// locked stays true: a newcomer must not get the mutex ahead of the goroutine that
	// was woken.
	close(m.queue.Remove(first).(chan struct{}))
	return true
}
