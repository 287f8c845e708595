package line

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A turn of this process bounds the time for which its goroutines hand a contender on.
// After that the contender goes to the end of the line.
const (
	maxTurnHolds = 128
	maxTurnTime  = 50 * time.Millisecond
)

// A LocalQueue has the goroutines that share a value. The fair mutex admits one of them
// at a time, which waits in line or holds. The goroutines share one contender, so only
// the first goroutine creates one. What happens to the contender when a goroutine enters
// the fair mutex, and when the goroutine leaves it:
//
//	state     | enters                     | leaves, another waits | leaves, none waits
//	none      | joins the line, and waits  | -                     | -
//	waiting   | waits on                   | waiting               | gone
//	granted   | granted; but if this       | granted               | lingering with Linger
//	          | process's time is up, it   |                       | after a release, else
//	          | joins again, and waits     |                       | gone
//	  if lost | gone; as with none         | gone                  | gone
//	lingering | granted if it is still     | -                     | -
//	          | first; else gone, as none  |                       |
//	inDoubt   | -                          | gone                  | gone
//
// A lingering contender is gone, too, when the time of Linger is over or another
// contender joins the line.
type LocalQueue struct {
	*Line
	Linger time.Duration
	Lost   func() error // returns the loss of the hold that was not released; nil for a semaphore
	turn   fairMutex
	size   sync.Once // see checkSize
	large  error     // the result of checkSize

	shared *contender // of the goroutine in the fair mutex; nil if there is none

	// A lingering contender is in no goroutine's hands, and may be evicted at any time.
	mu    sync.Mutex
	kept  *contender // lingering; nil if none is
	timer *time.Timer
}

// Acquire waits for a hold. Call Release to end the hold.
func (q *LocalQueue) Acquire(ctx context.Context) (*Grant, error) {
	waited, err := q.startTurn(ctx)
	if err != nil {
		return nil, err
	}
	if err := q.reach(ctx); err != nil {
		q.endTurn(nil)
		return nil, afterTurn(ctx, waited, err)
	}
	return q.shared.grant, nil
}

// TryAcquire is Acquire without waiting. It returns nil if the line or the local queue
// is not empty.
func (q *LocalQueue) TryAcquire(ctx context.Context) (*Grant, error) {
	if err := q.checkSize(); err != nil {
		return nil, err
	}
	if !q.turn.tryLock() {
		// Another goroutine holds, or is in line. tryLock never overtakes a goroutine that
		// waits, and no contender is shared while no goroutine is in the fair mutex.
		return nil, q.closed()
	}
	q.resume(ctx)
	if q.shared == nil {
		var err error
		if q.shared, err = q.try(ctx); q.shared == nil {
			q.turn.unlock()
			return nil, err
		}
	}
	return q.shared.grant, nil
}

// Release ends a hold, and hands its contender to the next goroutine, keeps it, or
// deletes it and waits for the answer. It fails with the loss if the hold was lost.
func (q *LocalQueue) Release(g *Grant) error {
	return q.endTurn(g)
}

// startTurn waits for the fair mutex, and returns the length of the wait. Call endTurn to leave
// the fair mutex.
func (q *LocalQueue) startTurn(ctx context.Context) (waited time.Duration, err error) {
	if err := q.checkSize(); err != nil {
		return 0, err
	}
	began := time.Now()
	err = q.turn.lock(ctx, q.Manager.Done(), func() *session.Wait {
		return q.Manager.StartWait(q.Op, q.Dir.Path, func(context.Context) error {
			if q.Lost != nil {
				if lost := q.Lost(); lost != nil {
					return fmt.Errorf("for a hold of this value that was lost to be released: %w", lost)
				}
			}
			text := "behind another goroutine of this process that uses the same value; goroutines that wait: %d"
			if q.Lost != nil { // a lock, and no semaphore, of which each caller may hold units
				text += " (locks are not reentrant)"
			}
			return fmt.Errorf(text, max(1, q.turn.length()))
		})
	})
	return time.Since(began), err
}

// minTurnWait is how long a wait for the fair mutex must be to be part of a reason.
const minTurnWait = time.Millisecond

// afterTurn adds the wait of startTurn to the error of a call that ctx has ended later. If ctx
// ends right after the fair mutex was handed over, that wait is the only reason.
func afterTurn(ctx context.Context, waited time.Duration, err error) error {
	if waited < minTurnWait || ctx.Err() == nil || session.ClassOf(err) != session.ClassCancelled {
		return err
	}
	reason := fmt.Errorf("waiting for %v behind another goroutine of this process that uses the same value", waited.Round(time.Millisecond))
	if then := session.WaitReason(err); then != nil {
		reason = fmt.Errorf("%w; then %w", reason, then)
	}
	return session.CancelledWaiting(ctx, reason)
}

// reach waits until the shared contender is granted. If the session is lost, a new
// contender joins the line under the next session. If ctx ends, the shared contender
// still waits: another goroutine of this process can use its position in line.
func (q *LocalQueue) reach(ctx context.Context) error {
	if ctx.Err() != nil {
		// The fair mutex may be handed to a goroutine at the moment at which its ctx ends.
		return session.Cancelled(ctx)
	}
	if q.shared == nil {
		q.resume(ctx)
	} else if q.shared.state == granted {
		if err := q.inherit(ctx); err != nil && !session.ClassOf(err).Again() {
			return err
		}
	}
	if q.shared != nil && q.shared.state == granted {
		return nil
	}
	var err error
	q.shared, err = q.stand(ctx, q.shared)
	return err
}

// inherit takes over the granted contender of the goroutine before.
func (q *LocalQueue) inherit(ctx context.Context) (err error) {
	c := q.shared
	switch {
	case c.grant.Lost() != nil:
		// The contender was lost while it was handed on. No hold was lost, since no
		// goroutine held it.
		q.discardShared()
	case c.holds < maxTurnHolds && time.Since(c.since) < maxTurnTime || c.contention.quiet():
		// The process keeps its turn while no other contender is known to be in line.
		c.holds++
		c.grant = c.grant.renew()
	default:
		// One transaction deletes the contender and creates the next one: the process is
		// never in line twice, and never out of line while its goroutines wait.
		c.close()
		if q.shared, err = q.join(ctx, c.s, c.path, true); session.ClassOf(err) == session.ClassRemoved {
			err = nil // no goroutine held the contender that another client has removed
		}
	}
	return err
}

// discardShared deletes the shared contender in the background.
func (q *LocalQueue) discardShared() {
	q.shared.discard()
	q.shared = nil
}

// endTurn ends a hold, or nil if there was none, and leaves the fair mutex; see LocalQueue.
// It fails with the loss of the hold.
func (q *LocalQueue) endTurn(released *Grant) error {
	var lost error
	if released != nil {
		lost = released.end()
	}
	c := q.shared
	if c == nil || c.state == gone {
		q.shared = nil
		q.turn.unlock()
		return nil
	}
	if released == nil && c.state == granted {
		lost = c.grant.Lost()
	}
	// After handOver, the shared contender belongs to the next goroutine.
	if lost == nil && c.state != inDoubt && q.turn.handOver() {
		return nil
	}
	if released == nil || lost != nil {
		// No answer is awaited: the caller's ctx may have ended, or nothing is held any more.
		q.discardShared()
		q.turn.unlock()
		return lost
	}
	q.shared = nil
	kept := q.Linger > 0 && q.keep(c)
	// A goroutine that joins while the znode is being deleted gets a later number.
	q.turn.unlock()
	if kept {
		return nil
	}
	return c.release()
}

// keep makes a contender linger instead of deleting it. It reports false if another
// contender is known to be in line.
func (q *LocalQueue) keep(c *contender) bool {
	if c.contention == nil {
		// The contender lingers before the line was listed once. If another contender is
		// in line already, the listing evicts this one at once.
		c.contention = newContentionWatch(c, func() { q.evict(c) })
	} else if !c.contention.quiet() {
		return false
	}
	// No guard is needed, since the contention watch notices a removal.
	c.grant.stop()
	c.lease.Prepare() // nothing is held, and the znode may be used again without a request
	c.state = lingering
	q.mu.Lock()
	q.kept, q.timer = c, time.AfterFunc(q.Linger, func() { q.evict(c) })
	q.mu.Unlock()
	if c.contention.over() { // it found a contender before q.kept was set
		q.evict(c)
	}
	return true
}

// resume makes a lingering contender granted and shared. No contender is shared
// afterwards if none lingers, or if it may be gone or is known to block another one.
func (q *LocalQueue) resume(ctx context.Context) {
	q.mu.Lock()
	c := q.kept
	q.kept = nil
	q.mu.Unlock()
	if c == nil {
		return
	}
	// From here on evict does not find the contender, and only this goroutine uses it.
	q.timer.Stop()
	_ = znode.AwaitClosed(ctx, c.contention.looked)
	// A watch on this connection, and a lease proven alive: so the contender exists, no
	// other contender was in line after the listing, and the session lives.
	usable := c.contention.quiet() && c.lease.Hold() == nil
	if usable {
		c.begin()
	} else if !c.contention.over() {
		// The connection or the proof of the session is new: only a listing shows whether
		// the contender still exists and is first. An error counts as no, since no hold
		// depends on the contender.
		ok, err := c.tryHold(ctx)
		usable = ok && err == nil
	}
	if !usable {
		c.discard()
		return
	}
	q.shared = c
}

// evict deletes a contender that still lingers.
func (q *LocalQueue) evict(c *contender) {
	q.mu.Lock()
	evicted := q.kept == c
	if evicted {
		q.kept = nil
		q.timer.Stop()
	}
	q.mu.Unlock()
	if evicted {
		c.discard()
	}
}
