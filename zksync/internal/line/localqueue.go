package line

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A turn bounds the time for which the goroutines of one process hand a contender on.
// After a turn, the contender goes to the end of the line.
const (
	maxTurnHolds = 128
	maxTurnTime  = 50 * time.Millisecond
)

// A LocalQueue has the goroutines that share a value. One of them at a time holds or
// waits in line. Only the first goroutine creates a contender. The next goroutine takes
// over the contender, which is granted or still waits, without a request.
type LocalQueue struct {
	Line   *Line
	Linger time.Duration
	turn   fairMutex

	// The state of the goroutine inside the fair mutex:
	spare *contender // from the goroutine before: granted or still waiting
	holds int        // of this turn
	since time.Time

	mu   sync.Mutex
	rest *resting // kept after the last release; see resting.go
}

// Acquire waits for a hold. Call Release to end the hold.
func (e *LocalQueue) Acquire(ctx context.Context) (*Hold, error) {
	if err := e.join(ctx); err != nil {
		return nil, err
	}
	p, err := e.reach(ctx)
	if err != nil {
		e.leave()
		return nil, err
	}
	return &Hold{p: p}, nil
}

// TryAcquire is Acquire without waiting. It returns nil if the line or the local queue
// is not empty.
func (e *LocalQueue) TryAcquire(ctx context.Context) (*Hold, error) {
	p, err := e.try(ctx)
	if p == nil {
		return nil, err
	}
	return &Hold{p: p}, nil
}

// Release ends a hold, and hands its contender to the next goroutine or deletes it. It
// fails with the loss if the hold was lost.
func (e *LocalQueue) Release(h *Hold) error {
	if err := h.p.lost(); err != nil {
		h.end(err)
	} else {
		h.end(ErrReleased)
	}
	return e.passOn(h.p)
}

// join waits for the turn of the caller. The turn lasts until leave, passOn, abandon or
// spend.
func (e *LocalQueue) join(ctx context.Context) error {
	return e.turn.lock(ctx, e.Line.Manager.Done(), e.startWait)
}

// startWait begins the wait for other goroutines of this value.
func (e *LocalQueue) startWait() *session.Wait {
	return e.Line.Manager.StartWait(e.Line.Op, e.Line.Dir.Path, func(context.Context) error {
		return fmt.Errorf("among %d goroutines of this process that use the same value, while another one holds it or is in line (locks are not reentrant)", e.turn.length())
	})
}

// reach returns a contender that is granted, for a caller whose turn it is. If the
// session is lost, it joins the line again under the next session.
func (e *LocalQueue) reach(ctx context.Context) (*contender, error) {
	p, err := e.inherit(ctx)
	if p != nil && p.guard != nil {
		return p, nil
	}
	if err != nil && !session.ClassOf(err).Again() {
		return nil, err
	}
	err = e.Line.Manager.Retry(ctx, func(s *session.Session) error {
		if p == nil {
			var err error
			if p, err = e.Line.join(ctx, s, "", true); err != nil {
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

// inherit takes over the contender of the goroutine before, which is granted (then it
// has a guard) or waits. It returns nil if there is no contender that can be used.
func (e *LocalQueue) inherit(ctx context.Context) (*contender, error) {
	p := e.take(ctx)
	switch {
	case ctx.Err() != nil:
		e.spare = p
		return nil, session.Cancelled(ctx)
	case p == nil || p.guard == nil:
		return p, nil
	case p.lost() != nil:
		// The contender was lost while it was handed on. No hold was lost, since no
		// goroutine held it.
		p.leave()
		return nil, nil
	case !e.turnOver(p):
		e.holds++
		return p, nil
	}
	p.close()
	next, err := e.Line.join(ctx, p.s, p.path, true)
	if session.ClassOf(err) == session.ClassRemoved {
		return nil, nil
	}
	return next, err
}

// turnOver reports whether the turn of this process is over. It is not over while no
// other contender is known to be in line.
func (e *LocalQueue) turnOver(p *contender) bool {
	return (e.holds >= maxTurnHolds || time.Since(e.since) >= maxTurnTime) && !p.contention.quiet()
}

// take returns the contender of the goroutine before, nil if there is none.
func (e *LocalQueue) take(ctx context.Context) *contender {
	p := e.spare
	e.spare = nil
	if p == nil {
		p = e.resume(ctx)
	}
	return p
}

// leave ends the turn of a caller without a hold. The spare contender goes to the next
// goroutine, or is deleted if no goroutine waits.
func (e *LocalQueue) leave() {
	if e.spare != nil {
		if e.turn.handOver() {
			return
		}
		e.spare.leave()
		e.spare = nil
	}
	e.turn.unlock()
}

// try returns a contender that is granted at once, nil if there is none.
func (e *LocalQueue) try(ctx context.Context) (*contender, error) {
	if !e.turn.tryLock() {
		return nil, nil
	}
	p, err := e.tryClaim(ctx)
	if p == nil {
		e.turn.unlock()
	}
	return p, err
}

func (e *LocalQueue) tryClaim(ctx context.Context) (*contender, error) {
	if p := e.take(ctx); p != nil {
		if p.lost() == nil {
			return p, nil
		}
		p.leave()
	}
	p, err := e.Line.try(ctx)
	if p != nil {
		e.holds, e.since = 1, time.Now()
	}
	return p, err
}

// passOn ends the turn of a caller with a hold. The contender goes to the next
// goroutine, rests, or is deleted. It fails with the loss if the hold was lost.
func (e *LocalQueue) passOn(p *contender) error {
	if err := p.lost(); err != nil {
		p.leave()
		e.turn.unlock()
		return err
	}
	e.spare = p
	if e.turn.handOver() {
		return nil
	}
	e.spare = nil
	if e.Linger > 0 && e.keep(p) {
		e.turn.unlock()
		return nil
	}
	// A goroutine that joins while the znode is being deleted gets a later number.
	e.turn.unlock()
	return p.release()
}

// abandon is passOn for a caller that cannot wait for an answer.
func (e *LocalQueue) abandon(p *contender) {
	if p.lost() == nil && !p.unsure {
		e.spare = p
		if e.turn.handOver() {
			return
		}
		e.spare = nil
	}
	p.leave()
	e.turn.unlock()
}

// spend ends the turn of a caller whose contender was deleted by a transaction, in
// exchange for other znodes.
func (e *LocalQueue) spend(p *contender) {
	p.close()
	e.turn.unlock()
}
