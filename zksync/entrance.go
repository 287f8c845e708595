package zksync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A turn is how long the goroutines of one process may hand a place on among
// themselves before it goes to the back of the line.
const (
	maxTurnHolds = 128
	maxTurnTime  = 50 * time.Millisecond
)

// An entrance lets the goroutines that share a value hold the first place of a line,
// one at a time. Only the first goroutine creates a znode. The goroutines behind it
// take over its place, which is granted or still waits, without a request.
type entrance struct {
	line   *line
	linger time.Duration
	local  turnstile

	// The state of the goroutine inside the turnstile:
	spare *place // handed over by the one before: granted or still waiting
	holds int    // of this turn
	since time.Time

	mu   sync.Mutex
	rest *resting // kept after the last release; see linger.go
}

// acquire returns a place that is granted. The caller is inside the turnstile
// until release.
func (e *entrance) acquire(ctx context.Context) (*place, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	p, err := e.reach(ctx)
	if err != nil {
		e.exit()
	}
	return p, err
}

// enter waits for its turn in the turnstile. The caller is inside until exit,
// abandon, release or spend.
func (e *entrance) enter(ctx context.Context) error {
	return e.local.enter(ctx, e.line.m.Done(), e.startWait)
}

// startWait begins the wait for other goroutines of this value.
func (e *entrance) startWait() *session.Wait {
	return e.line.m.StartWait(e.line.op, e.line.dir.Path, func(context.Context) error {
		return fmt.Errorf("among %d goroutines of this process that use the same value, while another one holds it or is in line (locks are not reentrant)", e.local.length())
	})
}

// reach is the rest of acquire, for a caller who is inside the turnstile. If the
// session is lost, it joins the line again under the next one.
func (e *entrance) reach(ctx context.Context) (*place, error) {
	p, err := e.inherit(ctx)
	if p != nil && p.guard != nil {
		return p, nil
	}
	if err != nil && !session.ClassOf(err).Again() {
		return nil, err
	}
	err = e.line.m.Retry(ctx, func(s *session.Session) error {
		if p == nil {
			var err error
			if p, err = e.line.join(ctx, s, ""); err != nil {
				return err
			}
		}
		err := p.wait(ctx)
		if err != nil && session.ClassOf(err) != session.ClassCancelled {
			p.leave()
			p = nil
		}
		return err
	})
	if err != nil {
		// The wait of p is of use to another goroutine of this process.
		e.spare = p
		return nil, err
	}
	e.holds, e.since = 1, time.Now()
	return p, nil
}

// inherit takes over the place that was left to us, which may be granted (then it
// has a guard) or wait. It returns nil if there is none of use.
func (e *entrance) inherit(ctx context.Context) (*place, error) {
	p := e.take(ctx)
	switch {
	case ctx.Err() != nil:
		e.spare = p
		return nil, session.Cancelled(ctx)
	case p == nil || p.guard == nil:
		return p, nil
	case p.lost() != nil:
		// The place was lost while it was handed on. This is no loss of a hold, since
		// no goroutine held it.
		p.leave()
		return nil, nil
	case !e.turnOver(p):
		e.holds++
		return p, nil
	}
	p.close()
	next, err := e.line.join(ctx, p.s, p.path)
	if session.ClassOf(err) == session.ClassRemoved {
		return nil, nil
	}
	return next, err
}

// turnOver says whether others should have their turn. While it is known that
// there are none, ours goes on.
func (e *entrance) turnOver(p *place) bool {
	return (e.holds >= maxTurnHolds || time.Since(e.since) >= maxTurnTime) && !p.crowd.quiet()
}

// take returns the place that was left to us, if any.
func (e *entrance) take(ctx context.Context) *place {
	p := e.spare
	e.spare = nil
	if p == nil {
		p = e.resume(ctx)
	}
	return p
}

// exit leaves the turnstile without a hold. A place that is still good goes to
// the next goroutine, or is given up if there is none.
func (e *entrance) exit() {
	if e.spare != nil {
		if e.local.handOver() {
			return
		}
		e.spare.leave()
		e.spare = nil
	}
	e.local.leave()
}

// try is acquire without waiting: nil if others are in line.
func (e *entrance) try(ctx context.Context) (*place, error) {
	if !e.local.tryEnter() {
		return nil, nil
	}
	p, err := e.tryClaim(ctx)
	if p == nil {
		e.local.leave()
	}
	return p, err
}

func (e *entrance) tryClaim(ctx context.Context) (*place, error) {
	if p := e.take(ctx); p != nil {
		if p.lost() == nil {
			return p, nil
		}
		p.leave()
	}
	p, err := e.line.try(ctx)
	if p != nil {
		e.holds, e.since = 1, time.Now()
	}
	return p, err
}

// release gives up a place that is held, to the next goroutine or to the next
// in line, and leaves the turnstile.
func (e *entrance) release(p *place) error {
	if err := p.lost(); err != nil {
		p.leave()
		e.local.leave()
		return err
	}
	e.spare = p
	if e.local.handOver() {
		return nil
	}
	e.spare = nil
	if e.linger > 0 && e.keep(p) {
		e.local.leave()
		return nil
	}
	// The next one may join while the removal is on its way: it comes behind.
	e.local.leave()
	return p.release()
}

// abandon is release for a caller who has no time to wait for an answer.
func (e *entrance) abandon(p *place) {
	if p.lost() == nil && !p.unsure {
		e.spare = p
		if e.local.handOver() {
			return
		}
		e.spare = nil
	}
	p.leave()
	e.local.leave()
}

// spend leaves the turnstile when the znode of a place that was held has gone
// in a transaction, in exchange for something else.
func (e *entrance) spend(p *place) {
	p.close()
	e.local.leave()
}
