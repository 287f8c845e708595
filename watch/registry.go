package watch

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A registry holds the sources of one kind, one for each path that is followed.
type registry[T any] struct {
	kind   string
	side   sideKind
	decode func(d *session.Delivery, path string) (T, stamp, error)
	absent func(path string) T

	mu      sync.Mutex
	sources map[sourceKey]*source[T]
}

type sourceKey struct {
	m    *session.Manager
	path string
}

// stream returns a stream of path.
func (r *registry[T]) stream(ctx context.Context, m *session.Manager, path string) *Stream[T] {
	st := emptyStream[T](r.kind, path)
	err := session.CheckPath(path)
	if err != nil || ctx.Err() != nil {
		st.end(ctx, err)
		return st
	}
	sub := &subscriber[T]{Stream: st, ctx: ctx}
	st.mu.Lock() // until unhook is set: the source may end before that
	defer st.mu.Unlock()
	src := r.join(sourceKey{m, path}, sub)
	st.leave = func() { src.leave(sub, &EndError{Reason: Stopped, Err: ErrStopped}) }
	sub.unhook = context.AfterFunc(ctx, func() { src.leave(sub, nil) })
	return st
}

// join adds sub to the source of a path, and creates the source for the first subscriber.
func (r *registry[T]) join(key sourceKey, sub *subscriber[T]) *source[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	src := r.sources[key]
	if src == nil {
		if r.sources == nil {
			r.sources = make(map[sourceKey]*source[T])
		}
		src = &source[T]{
			home: r, sourceKey: key, done: make(chan struct{}),
			side: side{kind: r.side, awaited: true}, subs: make(map[*subscriber[T]]struct{}),
		}
		src.ctx, src.cancel = context.WithCancel(context.Background())
		r.sources[key] = src
		go src.run()
	}
	src.add(sub)
	return src
}
