package line

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A contentionWatch watches the directory of a contender that rests or has rested: for
// contenders that join the line, and for the deletion of the contender itself. It lasts
// as long as the contender, over any number of holds.
type contentionWatch struct {
	evict  func() // called when the contender must not rest any longer
	p      *contender
	ctx    context.Context
	cancel context.CancelFunc
	looked chan struct{} // closed when the line was listed once
	done   chan struct{} // closed when the contender must not rest any longer, or at stop

	mu    sync.Mutex
	watch *session.Watch // armed when no other contender was in line; nil while unknown
}

func newContentionWatch(p *contender, evict func()) *contentionWatch {
	c := &contentionWatch{evict: evict, p: p, looked: make(chan struct{}), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.run()
	return c
}

// quiet reports whether the contender exists and no other contender is in line. It relies
// on a watch on the present connection, which would have fired otherwise.
func (c *contentionWatch) quiet() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch != nil && c.watch.Connection() == c.p.s.Connection() && c.watch.FiredOn() == 0
}

// over reports whether the contender must not rest any longer.
func (c *contentionWatch) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *contentionWatch) run() {
	c.watchLine()
	close(c.done)
	c.note(nil)
	c.evict()
}

// watchLine returns when the contender must not rest any longer: another contender is in
// line, or the directory has changed. The new contender may have left before another
// listing, as a TryLock does, but the next TryLock must not fail either.
func (c *contentionWatch) watchLine() {
	names, _, w, err := c.p.s.WatchChildren(c.ctx, c.p.line.Dir.Path)
	if err != nil {
		return
	}
	defer w.Stop()
	present := false
	for _, name := range names {
		if name == c.p.name {
			present = true
		} else if _, _, ok := c.p.line.Rule.Parse(name); ok {
			return
		}
	}
	if !present {
		return
	}
	c.note(w)
	select {
	case <-w.Events():
	case <-c.ctx.Done():
	}
}

func (c *contentionWatch) note(w *session.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
	select {
	case <-c.looked:
	default:
		close(c.looked)
	}
}

func (c *contentionWatch) stop() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}
