package queue

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed says that the consumer was closed.
var ErrClosed = errors.New("zksync: the queue was closed")

// A lifetime is the time from the creation of a Consumer to the end of its Close.
type lifetime struct {
	ctx        context.Context // ends when Close begins
	cancel     context.CancelCauseFunc
	cleanupCtx context.Context // ends when Close stops waiting
	endCleanup context.CancelCauseFunc
	closed     chan struct{} // closed when Close has returned
	wg         sync.WaitGroup

	closeMu sync.Mutex // held at the begin of Close and of each call
}

func newLifetime() *lifetime {
	l := &lifetime{closed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.cleanupCtx, l.endCleanup = context.WithCancelCause(context.Background())
	return l
}

// Life returns a context that ends when Close begins.
func (l *lifetime) Life() context.Context { return l.ctx }

// beginClose lets no further call and no further goroutine begin.
func (l *lifetime) beginClose() {
	// Under the mutex: once ctx has ended, no call begins, and only calls that wg counts already
	// add goroutines to it.
	l.closeMu.Lock()
	defer l.closeMu.Unlock()
	l.cancel(ErrClosed)
}

// spawn runs f in a goroutine that Close waits for. It reports false, and does nothing,
// after Close has begun.
func (l *lifetime) spawn(f func()) bool {
	if l.beginCall() != nil {
		return false
	}
	go func() {
		defer l.endCall()
		f()
	}()
	return true
}

// beginCall makes Close wait for endCall, unless Close has begun.
func (l *lifetime) beginCall() error {
	l.closeMu.Lock()
	defer l.closeMu.Unlock()
	if l.ctx.Err() == nil {
		l.wg.Add(1)
	}
	return context.Cause(l.ctx)
}

func (l *lifetime) endCall() { l.wg.Done() }
