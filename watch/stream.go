package watch

import (
	"context"
	"iter"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A Stream tells the present state of something and then its changes, to one
// consumer: either by Events or by All. It ends when its ctx does, when the loop
// over All is left, when the Manager is closed, or when what it follows cannot be
// followed: the path is invalid, or may not be read. It goes on over lost
// connections and sessions.
//
// A stream whose consumer goes away without any of these stays, like a
// time.Ticker: cancel its ctx.
type Stream[T any] struct {
	events chan T
	feed   *source[T] // nil if the stream was born ended

	// How far it has got with its feed, guarded by feed.mu: the round that was
	// under way when it joined, whether it has been told anything yet, and by
	// their stamps what it has received and what is waiting in the channel.
	joined   uint64
	served   bool
	received *stamp
	waiting  *stamp

	mu     sync.Mutex
	err    error
	unhook func() bool // stops waiting for ctx
}

// newStream begins a stream, which has ended already if there is nothing to
// follow.
func newStream[T any](ctx context.Context, r *registry[T], m *session.Manager, path string) *Stream[T] {
	st := &Stream[T]{events: make(chan T, 1)}
	err := session.CheckPath(path)
	if err == nil && ctx.Err() != nil {
		err = cancelled(ctx)
	}
	if err != nil {
		st.err = ended(r.what, path, err)
		close(st.events)
		return st
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	r.join(m, path, st)
	st.unhook = context.AfterFunc(ctx, func() { st.leave(cancelled(ctx)) })
	return st
}

// Events returns the channel of states, the present one first. Its buffer of
// one always holds the newest state that was not received yet: a newer one takes
// its place. It is closed when the stream ends, behind what it then holds; Err
// says why.
func (st *Stream[T]) Events() <-chan T { return st.events }

// All returns the states as a sequence for range: each as (state, nil), and when
// the stream ends, once, the zero T and the reason, the end of ctx included. Like
// Events it merges states that a slow loop body has missed. Leaving the loop ends
// the stream, with ErrStopped, and returns when nothing of it is left.
func (st *Stream[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer st.leave(ErrStopped)
		for v := range st.events {
			if !yield(v, nil) {
				return
			}
		}
		var none T
		yield(none, st.Err())
	}
}

// Err returns nil while the stream goes on, and then why it ended: an error that
// matches ctx.Err() and the cause of ctx, ErrStopped, session.ErrClosed,
// session.ErrInvalidPath, or what the server refused the read with, as
// zk.ErrNoAuth. It says the path.
func (st *Stream[T]) Err() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.err
}

// leave ends the stream from the consumer's side, once.
func (st *Stream[T]) leave(why error) {
	if st.feed != nil && st.feed.remove(st) {
		st.end(ended(st.feed.home.what, st.feed.path, why))
	}
}

// end is called by whoever has taken the stream from its feed, so nothing is
// sent any more.
func (st *Stream[T]) end(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.err = err
	st.unhook()
	close(st.events)
}

// push puts v into the channel in place of an older state that was not
// received. If that leads back to what the consumer has received before, which only
// absence can do, there is nothing to tell. One goroutine at a time does so, under
// feed.mu.
func (st *Stream[T]) push(v T, at stamp) {
	select {
	case <-st.events:
	default:
		if st.waiting != nil {
			st.received = st.waiting
		}
	}
	st.waiting = nil
	if st.received == nil || *st.received != at {
		st.waiting = &at
		st.events <- v
	}
}
