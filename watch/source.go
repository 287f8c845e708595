package watch

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A stamp tells states apart: it is equal for two reads if and only if nothing
// that a stream reports has changed in between.
type stamp struct {
	exists   bool
	instance int64 // czxid
	content  int64 // mzxid of a znode, pzxid of a list
}

// A source follows one path for all streams of the path, in one goroutine: it
// reads with a watch, reports to the streams, and reads again when the watch has
// fired.
type source[T any] struct {
	home *registry[T]
	sourceKey
	ctx    context.Context // ends when the last stream has left
	cancel context.CancelFunc
	done   chan struct{}

	// Of the goroutine alone:
	side  side
	value T // that the side showed last
	stamp stamp

	mu   sync.Mutex
	in   *session.Inbox // nil before the first session and between sessions
	subs map[*subscriber[T]]struct{}
}

// A subscriber is a stream with the source's state for it.
type subscriber[T any] struct {
	*Stream[T]
	ctx    context.Context
	unhook func() bool // stops waiting for ctx

	// admitted: any answer from now on shows a state that is new enough for the
	// stream. Guarded by the source's mu.
	admitted bool
}

// add adds a stream.
func (src *source[T]) add(sub *subscriber[T]) {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.subs[sub] = struct{}{}
	// The state known so far may be older than a state that the session has shown to the
	// caller. So a Post admits the stream: every answer that is delivered behind the Post is
	// new enough. Without an inbox the next session admits the stream.
	if src.in != nil {
		src.in.Post(sub)
	}
}

// leave ends a stream that is still subscribed. The last stream to leave waits for
// the end of the source.
func (src *source[T]) leave(sub *subscriber[T], why error) {
	// Under both: no stream may join a source after its last stream has left.
	src.home.mu.Lock()
	src.mu.Lock()
	_, subscribed := src.subs[sub]
	// Loop and ctx may end the stream at the same time. The first to take it from subs ends
	// it, so its channel is closed once.
	delete(src.subs, sub)
	last := subscribed && len(src.subs) == 0
	if last {
		src.forget()
	}
	src.mu.Unlock()
	src.home.mu.Unlock()
	if last {
		// Without the locks, because run takes them when it ends.
		src.cancel()
		<-src.done
	}
	if subscribed {
		sub.finish(why)
	}
}

// finish ends a stream that was taken from its source.
func (sub *subscriber[T]) finish(why error) {
	sub.unhook()
	sub.end(sub.ctx, why)
}

// forget makes the next stream of this path begin another source; home.mu is held.
func (src *source[T]) forget() {
	if src.home.sources[src.sourceKey] == src {
		delete(src.home.sources, src.sourceKey)
	}
}

// run follows the path over one session after the other.
func (src *source[T]) run() {
	defer close(src.done)
	defer src.cancel()
	why := followSessions(src.ctx, src.m, src.begin, src.apply)
	src.end(why, func(*subscriber[T]) bool { return true })
}

// begin asks for the side by the Inbox of another session. Between sessions the Inbox is nil.
func (src *source[T]) begin(in *session.Inbox) {
	src.mu.Lock()
	src.in = in
	// The first answer of a session is new enough for all streams that are subscribed so
	// far.
	for sub := range src.subs {
		sub.admitted = true
	}
	src.mu.Unlock()
	if in == nil {
		return
	}
	src.side.state = unasked // the watches of another session are gone
	src.side.input(need, in, src.path, src)
}

// apply applies one delivery. It fails when the side is refused.
func (src *source[T]) apply(d *session.Delivery) error {
	in := src.in // only this goroutine changes it
	switch d.Kind {
	case session.InboxPost:
		src.admit(d.Tag.(*subscriber[T]))
		return nil
	case session.InboxConnection:
		// A server of 3.9 keeps an event from a client that may not read the znode at
		// that moment, and takes its watch away. A read once a connection finds out.
		src.side.input(change, in, src.path, src)
		return nil
	}
	switch src.side.deliver(d, in, src.path) {
	case present:
		value, at, err := src.home.decode(d, src.path)
		if err != nil {
			return err
		}
		src.publish(value, at)
	case absent:
		src.publish(src.home.absent(src.path), stamp{})
	case denied:
		return src.refuse(src.side.refusal)
	}
	return nil
}

// admit takes a stream's Post.
func (src *source[T]) admit(sub *subscriber[T]) {
	src.mu.Lock()
	defer src.mu.Unlock()
	// The stream has ended since its Post, and its channel is closed.
	if _, subscribed := src.subs[sub]; !subscribed {
		return
	}
	sub.admitted = true
	// If the side is armed, no change has been delivered ahead of the Post, so the state
	// that is known is the present one. Otherwise the next answer shows the present state.
	if src.side.state == armed {
		sub.report(src.value, src.stamp)
	}
	// The refusal ended the streams that were admitted before. It may be older than this stream.
	if src.side.state == refused {
		src.side.input(need, src.in, src.path, src)
	}
}

// publish reports a state to all streams that are admitted.
func (src *source[T]) publish(value T, at stamp) {
	src.mu.Lock()
	defer src.mu.Unlock()
	// admit reports this state to a stream whose Post arrives while the side is armed.
	src.value, src.stamp = value, at
	for sub := range src.subs {
		if sub.admitted {
			sub.report(value, at)
		}
	}
}

// refuse ends the streams that are admitted, and returns why if no other stream is left. For a stream that is not
// admitted, the refusal may be older than a change that the session has shown to the caller.
func (src *source[T]) refuse(why error) error {
	if src.end(why, func(sub *subscriber[T]) bool { return sub.admitted }) {
		return why
	}
	return nil
}

// end ends the streams that which chooses, and the source with the last one.
func (src *source[T]) end(why error, which func(*subscriber[T]) bool) (last bool) {
	// Under both: no stream may join a source after its last stream has ended.
	src.home.mu.Lock()
	src.mu.Lock()
	var ended []*subscriber[T]
	for sub := range src.subs {
		if which(sub) {
			ended = append(ended, sub)
			delete(src.subs, sub)
		}
	}
	if last = len(src.subs) == 0; last {
		src.forget()
	}
	src.mu.Unlock()
	src.home.mu.Unlock()
	for _, sub := range ended {
		sub.finish(why)
	}
	return last
}

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
	src := r.join(sourceKey{m, path}, sub)
	st.leave = func() { src.leave(sub, &EndError{Reason: Stopped, Err: ErrStopped}) }
	return st
}

// join adds sub to the source of a path, and creates the source for the first subscriber.
func (r *registry[T]) join(key sourceKey, sub *subscriber[T]) *source[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	// leave and end forget a source under the same lock, so a source that is found here
	// still reports.
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
		// After the first stream was added: the first answer is then new enough for this stream.
		defer func() { go src.run() }()
	}
	// In the lock of the registry, which leave takes: otherwise the last other stream could
	// leave first, and end the source.
	sub.unhook = context.AfterFunc(sub.ctx, func() { src.leave(sub, nil) })
	src.add(sub)
	return src
}
