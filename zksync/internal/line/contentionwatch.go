package line

import (
	"context"
	"sync/atomic"

	"github.com/go-zksync/toolkit/session"
)

// A contentionWatch watches the directory of a contender that lingers or has lingered: for
// contenders that join the line, and for the deletion of the contender itself. It lasts
// as long as the contender, over any number of holds.
type contentionWatch struct {
	c      *contender
	watch  atomic.Pointer[session.Watch] // armed when no other contender was in line
	looked chan struct{}                 // closed when the line was listed once
	ended  chan struct{}                 // closed when the watch is stopped

	ctx    context.Context // ends when the contender must not linger any longer
	cancel context.CancelFunc
}

// newContentionWatch begins a contentionWatch. It calls evict when the contender must not
// linger any longer.
func newContentionWatch(c *contender, evict func()) *contentionWatch {
	cw := &contentionWatch{c: c, looked: make(chan struct{}), ended: make(chan struct{})}
	// The watch outlives the Release that starts it.
	cw.ctx, cw.cancel = context.WithCancel(context.Background())
	go func() {
		cw.run()
		// The context has ended before evict is called: keep sets the lingering contender and
		// then looks at the context, so one of the two evicts it.
		evict()
	}()
	return cw
}

// quiet reports whether the contender exists and no other contender is in line.
func (cw *contentionWatch) quiet() bool {
	if cw == nil || cw.over() {
		return false
	}
	// A watch on the present connection would have fired otherwise.
	w := cw.watch.Load()
	return w != nil && w.Connection() == cw.c.s.Connection() && w.FiredOn() == 0
}

// over reports whether the contender must not linger any longer.
func (cw *contentionWatch) over() bool { return cw.ctx.Err() != nil }

// run returns when the contender must not linger any longer: another contender is in
// line, or the directory has changed.
func (cw *contentionWatch) run() {
	defer close(cw.ended)
	defer cw.cancel()
	w := cw.list()
	if w == nil {
		cw.cancel() // before looked is closed: resume needs no request to learn this
		close(cw.looked)
		return
	}
	defer w.Stop()
	// The watch was armed by the listing itself, so no change was missed in between.
	cw.watch.Store(w)
	close(cw.looked)
	// The contender that joined may have left before another listing, as a TryLock does, but
	// the next TryLock must not fail either. So any change ends the linger.
	select {
	case <-w.Events():
	case <-cw.ctx.Done():
	}
}

// list lists the line, and returns a watch on it. It returns nil unless the contender is
// the only one.
func (cw *contentionWatch) list() *session.Watch {
	names, _, w, err := cw.c.s.WatchChildren(cw.ctx, cw.c.line.Dir.Path)
	if err != nil {
		return nil
	}
	line := cw.c.line.Rule.sort(names)
	if len(line) == 1 && line[0].name == cw.c.name {
		return w
	}
	w.Stop()
	return nil
}

func (cw *contentionWatch) close() {
	if cw == nil {
		return
	}
	// Do not wait for the end of the goroutine: it calls evict, which calls this method.
	cw.cancel()
	<-cw.ended
}
