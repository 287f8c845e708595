package line

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A contentionWatch watches the directory of a contender that lingers or has lingered: for
// contenders that join the line, and for the deletion of the contender itself. It lasts
// as long as the contender, over any number of holds.
type contentionWatch struct {
	evict  func() // called when the contender must not linger any longer
	c      *contender
	ctx    context.Context
	cancel context.CancelFunc
	looked chan struct{} // closed when the line was listed once
	done   chan struct{} // closed when the contender must not linger any longer, or at stop

	mu    sync.Mutex
	watch *session.Watch // armed when no other contender was in line; nil while unknown
}

func newContentionWatch(c *contender, evict func()) *contentionWatch {
	cw := &contentionWatch{evict: evict, c: c, looked: make(chan struct{}), done: make(chan struct{})}
	cw.ctx, cw.cancel = context.WithCancel(context.Background())
	go cw.run()
	return cw
}

// quiet reports whether the contender exists and no other contender is in line. It relies
// on a watch on the present connection, which would have fired otherwise.
func (cw *contentionWatch) quiet() bool {
	if cw == nil {
		return false
	}
	cw.mu.Lock()
	defer cw.mu.Unlock()
	return cw.watch != nil && cw.watch.Connection() == cw.c.s.Connection() && cw.watch.FiredOn() == 0
}

// over reports whether the contender must not linger any longer.
func (cw *contentionWatch) over() bool {
	select {
	case <-cw.done:
		return true
	default:
		return false
	}
}

func (cw *contentionWatch) run() {
	cw.watchLine()
	// done is closed before evict is called: keep sets the lingering contender and then
	// looks at done, so one of the two evicts it.
	close(cw.done)
	cw.note(nil)
	cw.evict()
}

// watchLine returns when the contender must not linger any longer: another contender is in
// line, or the directory has changed. The new contender may have left before another
// listing, as a TryLock does, but the next TryLock must not fail either.
func (cw *contentionWatch) watchLine() {
	names, _, w, err := cw.c.s.WatchChildren(cw.ctx, cw.c.line.Dir.Path)
	if err != nil {
		return
	}
	defer w.Stop()
	present := false
	for _, name := range names {
		if name == cw.c.name {
			present = true
		} else if _, _, ok := cw.c.line.Rule.Parse(name); ok {
			return
		}
	}
	if !present {
		return
	}
	// The watch was armed by the listing itself, so no change was missed in between.
	cw.note(w)
	select {
	case <-w.Events():
	case <-cw.ctx.Done():
	}
}

func (cw *contentionWatch) note(w *session.Watch) {
	cw.mu.Lock()
	defer cw.mu.Unlock()
	// run calls note again when the watch has fired: then the state of the line is
	// unknown.
	cw.watch = w
	select {
	case <-cw.looked:
	default:
		close(cw.looked)
	}
}

func (cw *contentionWatch) stop() {
	if cw == nil {
		return
	}
	// Do not wait for the end of run: run calls evict, which calls this method.
	cw.cancel()
	<-cw.done
}
