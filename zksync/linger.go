package zksync

import (
	"context"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A resting place has been released by its last holder and is kept for the next,
// until another contender joins the line or its time is up.
type resting struct {
	p     *place
	timer *time.Timer
}

// keep puts a place to rest instead of removing it. It declines if others are
// known to be in line.
func (e *entrance) keep(p *place) bool {
	if p.crowd == nil {
		p.crowd = newCrowd(e, p)
	} else if !p.crowd.quiet() {
		return false
	}
	p.guard.stop()
	p.guard = nil
	p.lease.Prepare() // nothing is held, and the znode may be used again without a request
	e.mu.Lock()
	e.rest = &resting{p: p, timer: time.AfterFunc(e.linger, func() { e.evict(p) })}
	e.mu.Unlock()
	if p.crowd.over() { // it found a contender before e.rest was set
		e.evict(p)
	}
	return true
}

// resume takes the resting place up again, if there is a place that is certain to be
// ours, and not known to keep others waiting.
func (e *entrance) resume(ctx context.Context) *place {
	e.mu.Lock()
	r := e.rest
	e.rest = nil
	e.mu.Unlock()
	if r == nil {
		return nil
	}
	r.timer.Stop()
	p := r.p
	select {
	case <-p.crowd.looked:
	case <-ctx.Done():
	}
	if p.crowd.quiet() && p.lease.Hold() == nil {
		p.guard = newGuard(p)
	} else if p.crowd.over() || !p.retake(ctx) {
		p.leave()
		return nil
	}
	e.holds, e.since = 0, time.Now()
	return p
}

// retake asks the server whether a place exists and is first. An error counts as no:
// no hold depended on the place.
func (p *place) retake(ctx context.Context) bool {
	first, err := p.first(ctx)
	return first && err == nil
}

// evict removes the resting place, if it still rests.
func (e *entrance) evict(p *place) {
	e.mu.Lock()
	if e.rest == nil || e.rest.p != p {
		e.mu.Unlock()
		return
	}
	r := e.rest
	e.rest = nil
	e.mu.Unlock()
	r.timer.Stop()
	p.leave()
}

// A crowd watches the directory of a place that lingers: for contenders that join the
// line, and for the removal of the place itself. It lives as long as the place, over
// any number of holds.
type crowd struct {
	e      *entrance
	p      *place
	ctx    context.Context
	cancel context.CancelFunc
	looked chan struct{} // closed when the first look has been taken
	done   chan struct{} // closed when the place has to go, or the crowd was stopped

	mu    sync.Mutex
	watch *session.Watch // armed when no other contender was in line; nil while unknown
}

func newCrowd(e *entrance, p *place) *crowd {
	c := &crowd{e: e, p: p, looked: make(chan struct{}), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.run()
	return c
}

// quiet reports whether the place exists and no other contender is in line. It relies
// on a watch on the present connection, which would have fired otherwise.
func (c *crowd) quiet() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch != nil && c.watch.Connection() == c.p.s.Connection() && c.watch.FiredOn() == 0
}

// over says that the place has to go.
func (c *crowd) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *crowd) run() {
	c.look()
	close(c.done)
	c.note(nil)
	c.e.evict(c.p)
}

// look returns when the place has to go: others are there, or anything changes. A
// contender that came may have left before another look, as a TryLock does, but the
// place must not keep it out the next time.
func (c *crowd) look() {
	names, _, w, err := c.p.s.WatchChildren(c.ctx, c.p.line.dir.Path)
	if err != nil {
		return
	}
	defer w.Stop()
	present := false
	for _, name := range names {
		if name == c.p.name {
			present = true
		} else if _, _, ok := c.p.line.rule.parse(name); ok {
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

func (c *crowd) note(w *session.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
	select {
	case <-c.looked:
	default:
		close(c.looked)
	}
}

func (c *crowd) stop() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}
