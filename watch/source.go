package watch

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A stamp tells states apart: it is equal for two reads if and only if nothing
// that a stream tells has changed in between.
type stamp struct {
	exists   bool
	instance int64 // czxid
	content  int64 // mzxid of a znode, pzxid of a list
}

// A reader reads what a source follows, with a watch for its next change.
type reader[T any] func(ctx context.Context, s *session.Session, path string) (T, stamp, *session.Watch, error)

// A registry holds the sources of one kind, one for each path that somebody
// follows.
type registry[T any] struct {
	what string
	read reader[T]

	mu      sync.Mutex
	sources map[sourceKey]*source[T]
}

type sourceKey struct {
	m    *session.Manager
	path string
}

// join gives st a source, which it makes if there is none.
func (r *registry[T]) join(m *session.Manager, path string, st *Stream[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := sourceKey{m, path}
	src := r.sources[key]
	if src == nil {
		if r.sources == nil {
			r.sources = make(map[sourceKey]*source[T])
		}
		src = &source[T]{
			home: r, sourceKey: key, done: make(chan struct{}),
			kick: make(chan struct{}, 1), streams: make(map[*Stream[T]]struct{}),
		}
		src.ctx, src.cancel = context.WithCancel(context.Background())
		r.sources[key] = src
		go src.run()
	}
	st.feed = src
	src.add(st)
}

// A source follows one path for all streams of it: one goroutine, which reads
// with a watch, tells the streams, and reads again when the watch has fired.
type source[T any] struct {
	home *registry[T]
	sourceKey
	ctx    context.Context // ends when the last stream has left
	cancel context.CancelFunc
	done   chan struct{}
	kick   chan struct{} // a newcomer wants a read

	mu      sync.Mutex
	streams map[*Stream[T]]struct{}
	round   uint64 // reads begun
	reading bool
	known   bool // the two below are set
	value   T
	stamp   stamp
	s       *session.Session // by which value was read
	w       *session.Watch   // that came with it
}

// fresh says whether value is certainly the present state, as far as the
// session can know: its watch is armed on the connection in use and has not
// fired. Events come before the answers to whatever follows them, so nobody can
// have been answered by a newer state.
func (src *source[T]) fresh() bool {
	return src.known && src.w.FiredOn() == 0 && src.s.Err() == nil && src.s.Connection() == src.w.Connection()
}

// add lets a stream in. What is known may be out of date; then the stream waits
// for a read that begins after it came.
func (src *source[T]) add(st *Stream[T]) {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.streams[st] = struct{}{}
	st.joined = src.round
	if src.fresh() {
		st.served = true
		st.push(src.value, src.stamp)
		return
	}
	if !src.reading {
		select {
		case src.kick <- struct{}{}:
		default:
		}
	}
}

// remove takes a stream out and reports whether it was in. The last one to go
// waits for the end of the source.
func (src *source[T]) remove(st *Stream[T]) bool {
	src.home.mu.Lock()
	src.mu.Lock()
	_, in := src.streams[st]
	delete(src.streams, st)
	last := in && len(src.streams) == 0
	if last {
		src.forget()
	}
	src.mu.Unlock()
	src.home.mu.Unlock()
	if last {
		src.cancel()
		<-src.done
	}
	return in
}

// forget makes the next stream of this path begin another source; home.mu is
// held.
func (src *source[T]) forget() {
	if src.home.sources[src.sourceKey] == src {
		delete(src.home.sources, src.sourceKey)
	}
}

func (src *source[T]) run() {
	defer close(src.done)
	defer src.cancel()
	for {
		s, err := src.m.Session(src.ctx)
		if err == nil {
			err = src.follow(s)
		}
		if src.ctx.Err() != nil || !errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) {
			src.fail(err)
			return
		}
	}
}

// follow reads for as long as a session lasts.
func (src *source[T]) follow(s *session.Session) error {
	var w *session.Watch
	defer func() {
		if w != nil {
			w.Stop()
		}
	}()
	for {
		src.begin()
		value, stamp, next, err := src.home.read(src.ctx, s, src.path)
		if err != nil {
			return err
		}
		again := src.publish(value, stamp, s, next)
		// A watch that was given up does not fire, so what came with it seems
		// fresh for ever: it stays until there is another.
		if w != nil {
			w.Stop()
		}
		if w = next; again {
			continue
		}
		select {
		case <-w.Events(): // also when the session ends, which the next read says
		case <-src.kick:
		case <-src.ctx.Done():
		}
	}
}

// begin announces a read, which is for all that have come so far.
func (src *source[T]) begin() {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.round++
	src.reading = true
	select {
	case <-src.kick:
	default:
	}
}

// publish tells all streams of what was read. It reports whether somebody came
// too late for this read and needs another one: the state may have changed, and
// the newcomer may have been answered by that change, before it came.
func (src *source[T]) publish(value T, stamp stamp, s *session.Session, w *session.Watch) (again bool) {
	src.mu.Lock()
	defer src.mu.Unlock()
	src.known, src.value, src.stamp, src.s, src.w = true, value, stamp, s, w
	src.reading = false
	fresh := src.fresh()
	for st := range src.streams {
		switch {
		case st.served || st.joined < src.round || fresh:
			st.served = true
			st.push(value, stamp)
		default:
			again = true
		}
	}
	return again
}

// fail ends all streams.
func (src *source[T]) fail(why error) {
	src.home.mu.Lock()
	src.forget()
	src.home.mu.Unlock()
	src.mu.Lock()
	streams := src.streams
	src.streams = nil
	src.mu.Unlock()
	for st := range streams {
		st.end(ended(src.home.what, src.path, why))
	}
}
