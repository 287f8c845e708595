package zksync

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A resting place has been released by its last holder and is kept for the
// next, until somebody else joins the line or its time is up.
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
	p.lease.End() // nothing is held any more, but it is to be held again
	p.lease = p.s.Lease()
	e.mu.Lock()
	e.rest = &resting{p: p, timer: time.AfterFunc(e.linger, func() { e.evict(p) })}
	e.mu.Unlock()
	select {
	case <-p.crowd.done: // it found somebody before there was anything to evict
		e.evict(p)
	default:
	}
	return true
}

// resume takes the resting place up again, if there is one that is certain to
// be ours and alone.
func (e *entrance) resume() *place {
	e.mu.Lock()
	r := e.rest
	e.rest = nil
	e.mu.Unlock()
	if r == nil {
		return nil
	}
	r.timer.Stop()
	if !r.p.crowd.quiet() || r.p.s.Err() != nil || r.p.lease.Hold() != nil {
		r.p.leave()
		return nil
	}
	r.p.guard = newGuard(r.p)
	e.holds, e.since = 0, time.Now()
	return r.p
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

// A crowd watches the directory of a place that lingers: for others who join
// the line, and for the removal of the place itself. It lives as long as the place,
// over any number of holds.
type crowd struct {
	e      *entrance
	p      *place
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	watch *session.Watch // armed when nobody else was there; nil while unknown
	first bool           // the first look has been taken
	conn  uint64         // the connection in use when the place began to linger
}

func newCrowd(e *entrance, p *place) *crowd {
	c := &crowd{e: e, p: p, done: make(chan struct{}), conn: p.s.Connection()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.run()
	return c
}

// quiet says that nobody else is in line, as of a watch that would have told
// otherwise on the very connection in use. Until the first look is back, the
// place is only known to be there, which is as good: others wait a moment longer.
func (c *crowd) quiet() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := c.p.s.Connection()
	if !c.first {
		return conn != 0 && conn == c.conn
	}
	return c.watch != nil && c.watch.Connection() == conn && len(c.watch.Events()) == 0
}

func (c *crowd) run() {
	evict := c.look()
	close(c.done)
	if evict {
		c.e.evict(c.p)
	}
}

// look goes on until the place has to go.
func (c *crowd) look() (evict bool) {
	for {
		names, _, w, err := c.p.s.WatchChildren(c.ctx, c.p.line.dir.path)
		if err != nil {
			c.note(nil)
			return c.ctx.Err() == nil
		}
		present, others := false, false
		for _, name := range names {
			if name == c.p.name {
				present = true
			} else if _, _, ok := c.p.line.rule.parse(name); ok {
				others = true
			}
		}
		if !present || others {
			w.Stop()
			c.note(nil)
			return true
		}
		c.note(w)
		select {
		case ev := <-w.Events():
			if ev.Type == zk.EventNotWatching {
				return false
			}
		case <-c.ctx.Done():
			w.Stop()
			return false
		}
	}
}

func (c *crowd) note(w *session.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch, c.first = w, true
}

func (c *crowd) stop() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}
