package watch

import (
	"context"
	"errors"
	"iter"
	"sync"
)

// A Stream reports the present state of something and then its changes, to one
// consumer: either by Events or by All. It ends when its ctx ends, when the loop
// over All is left, when the Manager is closed, or when the path is invalid or may
// not be read. A stream survives lost connections, lost sessions, and refusals
// that are not final, as of a server that is overloaded.
//
// A stream whose consumer goes away without any of these stays, like a
// time.Ticker: cancel its ctx.
type Stream[T any] struct {
	kind   string
	path   string
	events chan T
	leave  func() // ends the stream for its consumer, and waits until nothing is left

	// The keys of the state that the consumer has received, and of the state that
	// waits in events. They belong to the one goroutine that reports.
	received, waiting any

	mu  sync.Mutex
	err error // an *EndError
}

func emptyStream[T any](kind, path string) *Stream[T] {
	return &Stream[T]{kind: kind, path: path, events: make(chan T, 1), leave: func() {}}
}

// NewStream returns a stream of the values that produce reports, for streams that are
// made from requests or from other streams. kind and path appear in the stream's
// EndError.
//
// produce runs in a goroutine of its own, and runs until it has no more to
// report. Its ctx ends with ctx, and when the consumer leaves the loop over All.
// produce then returns soon, and at any other time only with the reason why the
// stream must end: session.ErrClosed, a refusal that is final, or the Err of
// another Stream. The stream is closed when produce has returned.
//
// report never blocks: the value replaces a value that was not received.
// Equal keys stand for equal values: a value whose key equals the key of the value
// that was received last is not reported. A nil key equals no other. A key must be
// comparable: a struct or a string, for example, and no slice. Only produce
// itself may call report.
func NewStream[T any](ctx context.Context, kind, path string, produce func(ctx context.Context, report func(value T, key any)) error) *Stream[T] {
	st := emptyStream[T](kind, path)
	if ctx.Err() != nil {
		st.end(ctx, nil)
		return st
	}
	inner, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	// After done nothing of the stream runs, as All promises.
	st.leave = func() { cancel(ErrStopped); <-done }
	go func() {
		defer close(done)
		defer cancel(nil)
		err := errExited
		// Deferred, because a function of the user may call runtime.Goexit, for example by t.FailNow.
		defer func() {
			// The consumer has ended produce, so the error of produce is only the end of its ctx.
			if context.Cause(inner) == ErrStopped {
				err = &EndError{Reason: Stopped, Err: ErrStopped}
			}
			st.end(ctx, err)
		}()
		err = produce(inner, st.report)
	}()
	return st
}

// errExited is the reason of a stream whose function has not returned.
var errExited = errors.New("the function of the stream has called runtime.Goexit")

// Events returns the channel of states, the present one first. Its buffer of one
// always holds the newest state that was not received yet: a newer state takes its
// place. The stream closes the channel when it ends, behind the state that the
// channel then holds; Err returns the reason.
func (st *Stream[T]) Events() <-chan T { return st.events }

// All returns the states as a sequence for range: each as (state, nil), and when
// the stream ends, once, the zero T and the reason, the end of ctx included. Like
// Events, All merges states that a slow loop body has missed. Leaving the loop ends
// the stream, with ErrStopped, and returns when nothing of the stream is left.
func (st *Stream[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer func() {
			st.leave()
			// The end of ctx may be ending the stream already, in another goroutine.
			for range st.events {
			}
		}()
		for v := range st.events {
			if !yield(v, nil) {
				return
			}
		}
		var none T
		// end sets the error before it closes the channel.
		yield(none, st.Err())
	}
}

// Err returns nil while the stream goes on, and then an *EndError, which says why
// the stream has ended, and names the path.
func (st *Stream[T]) Err() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.err
}

// end closes the stream. The caller makes sure that end is called once, and that
// nothing is reported any more.
func (st *Stream[T]) end(ctx context.Context, why error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.err = ended(ctx, st.kind, st.path, why)
	close(st.events)
}

// report puts v into the channel in place of an older state that was not
// received. One goroutine at a time reports.
func (st *Stream[T]) report(v T, key any) {
	select {
	case <-st.events:
	default:
		// Nothing waits although a state was put there: the consumer has received that
		// state.
		if st.waiting != nil {
			st.received = st.waiting
		}
	}
	st.waiting = nil
	if key == nil {
		key = new(byte) // equals no other key
	}
	// If v leads back to the state that the consumer has received, there is nothing to
	// report.
	if st.received != key {
		st.waiting = key
		// Only the goroutine that reports sends, and it has just emptied the channel.
		st.events <- v
	}
}
