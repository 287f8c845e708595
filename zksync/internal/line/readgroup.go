package line

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A readGroup has the readers of one value that share a contender. New readers join the
// group while it waits, and for the time of a turn after it was granted. Later readers
// form another group behind it, so that writers in line get their turn.
//
// A goroutine of the group waits in line for all its readers, until no reader waits any
// more.
type readGroup struct {
	r      *Readers
	ctx    context.Context // ends when no reader waits any more
	cancel context.CancelFunc
	done   chan struct{} // closed when the group is granted or has failed

	// Guarded by the readers' mutex:
	waiting int
	grant   *Grant // nil while the group waits, and after a failure
	since   time.Time
	err     error // the reason why the group failed
}

func newReadGroup(r *Readers) *readGroup {
	g := &readGroup{r: r, done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// run waits in line until the group is granted or fails.
func (g *readGroup) run() {
	defer close(g.done)
	defer g.cancel()
	// If holds of the pool are lost while the group waits, its readers wait on, and the
	// group joins the line again when those holds have been released.
	err := g.r.retry(g.ctx, g.stand)
	if err == nil {
		return
	}
	g.r.mu.Lock()
	defer g.r.mu.Unlock()
	g.err = err
	g.r.forget(g)
}

// stand makes one attempt. It returns nil if the group is granted or no reader waits
// for it any more.
func (g *readGroup) stand() error {
	grant, err := g.r.line.Acquire(g.ctx)
	if err != nil {
		return err
	}
	return g.begin(g.ctx, grant)
}

// begin gives a grant to the readers that wait, and lets other readers join them unless
// another group is open. If it fails, or if no reader waits, it withdraws the grant.
func (g *readGroup) begin(ctx context.Context, grant *Grant) (err error) {
	g.r.mu.Lock()
	// The last reader may have given up at the moment of the grant.
	granted := g.waiting > 0
	if granted {
		err = g.r.add(grant, g.waiting)
		granted = err == nil
	}
	if granted {
		g.grant, g.since, g.waiting = grant, time.Now(), 0
		if !g.r.open.admits() {
			g.r.open = g
		}
	}
	g.r.mu.Unlock()
	if !granted {
		err = grant.withdraw(ctx, err) // not under the mutex: a guard that reports a loss waits for the mutex
	}
	return err
}

// admits reports whether another reader may still join; the readers' mutex is held.
func (g *readGroup) admits() bool {
	switch {
	case g == nil || g.err != nil:
		return false
	case g.grant == nil:
		return true
	}
	// A reader that joins a grant overtakes the writers that wait behind it, so the time is
	// bounded. The grant may be released already.
	return g.grant.left > 0 && g.r.check() == nil && time.Since(g.since) < maxTurnTime
}

// wait waits until the group is granted or fails.
func (g *readGroup) wait(ctx context.Context) (*Grant, error) {
	select {
	case <-g.done:
		return g.grant, g.err
	case <-ctx.Done():
	}
	g.r.mu.Lock()
	if g.grant != nil || g.err != nil {
		// This reader was counted as a holder when the group was granted. So it holds, and
		// must not fail.
		g.r.mu.Unlock()
		<-g.done
		return g.grant, g.err
	}
	g.waiting--
	last := g.waiting == 0
	if last {
		g.r.forget(g)
		g.cancel()
	}
	g.r.mu.Unlock()
	if last {
		// Lock promises that no znode stays behind: run deletes it before it closes done. And run has
		// failed with the reason for its wait.
		<-g.done
		if reason := session.WaitReason(g.err); reason != nil {
			return nil, session.CancelledWaiting(ctx, reason)
		}
	} else if reason := g.r.line.waiting(ctx); reason != nil {
		return nil, session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", reason))
	}
	return nil, g.r.line.Manager.Cancelled(ctx)
}
