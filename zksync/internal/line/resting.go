package line

import (
	"context"
	"time"
)

// A resting contender was released by its last holder, and is kept for the next holder
// until another contender joins the line or the time of Linger is over.
type resting struct {
	p     *contender
	timer *time.Timer
}

// keep makes a contender rest instead of deleting it. It reports false if another
// contender is known to be in line.
func (e *LocalQueue) keep(p *contender) bool {
	if p.contention == nil {
		p.contention = newContentionWatch(p, func() { e.evict(p) })
	} else if !p.contention.quiet() {
		return false
	}
	p.guard.stop()
	p.guard = nil
	p.lease.Prepare() // nothing is held, and the znode may be used again without a request
	e.mu.Lock()
	e.rest = &resting{p: p, timer: time.AfterFunc(e.Linger, func() { e.evict(p) })}
	e.mu.Unlock()
	if p.contention.over() { // it found a contender before e.rest was set
		e.evict(p)
	}
	return true
}

// resume returns the resting contender, granted again. It returns nil if no contender
// rests, or if the contender may be gone or is known to block another one.
func (e *LocalQueue) resume(ctx context.Context) *contender {
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
	case <-p.contention.looked:
	case <-ctx.Done():
	}
	if p.contention.quiet() && p.lease.Hold() == nil {
		p.guard = newGuard(p.s, p.path, p.own)
	} else if p.contention.over() || !p.retake(ctx) {
		p.leave()
		return nil
	}
	e.holds, e.since = 0, time.Now()
	return p
}

// retake reports whether the contender still exists and is first. An error counts as no:
// no hold depended on the contender.
func (p *contender) retake(ctx context.Context) bool {
	first, err := p.first(ctx)
	return first && err == nil
}

// evict deletes a contender that still rests.
func (e *LocalQueue) evict(p *contender) {
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
