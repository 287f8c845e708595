package zksync

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A readGroup is the readers of one value that share a place in line. Newcomers
// join it while it waits, and for the time of a turn once it has been granted;
// later ones stand behind, in a group of their own, so that writers get theirs.
//
// The place stands in line for all waiting readers of the group, in a goroutine of
// its own, until no reader waits any more.
type readGroup struct {
	r      *readers
	ctx    context.Context // ends when no reader waits any more
	cancel context.CancelFunc
	done   chan struct{} // closed when the group is granted or has failed

	// Guarded by the readers' mutex:
	waiting int
	stake   *stake // when it is granted
	since   time.Time
	err     error // when it is not
}

func newReadGroup(r *readers) *readGroup {
	g := &readGroup{r: r, done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// run waits in line until the group is granted or fails.
func (g *readGroup) run() {
	defer close(g.done)
	defer g.cancel()
	err := g.r.m.Retry(g.ctx, func(*session.Session) error {
		err := g.stand()
		for err == errTainted {
			err = g.stand()
		}
		return err
	})
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
	err := g.r.untainted(g.ctx)
	var st *stake
	if err == nil {
		var p *place
		if p, err = g.r.line.stand(g.ctx); err == nil {
			st = p.stake()
		}
	}
	g.r.mu.Lock()
	if err == nil && g.waiting > 0 {
		err = g.r.add(st, g.waiting)
	}
	granted := err == nil && g.waiting > 0
	if granted {
		g.stake, g.since, g.waiting = st, time.Now(), 0
	}
	g.r.mu.Unlock()
	if st != nil && !granted {
		st.leave()
	}
	return err
}

// admits reports whether another reader may still join; the readers' mutex is held.
func (g *readGroup) admits() bool {
	switch {
	case g == nil || g.err != nil:
		return false
	case g.stake == nil:
		return true
	}
	return g.stake.left > 0 && g.r.check() == nil && time.Since(g.since) < maxTurnTime
}

// wait waits until the group is granted or fails.
func (g *readGroup) wait(ctx context.Context) (*stake, error) {
	select {
	case <-g.done:
		return g.stake, g.err
	case <-ctx.Done():
	}
	g.r.mu.Lock()
	if g.stake != nil || g.err != nil {
		g.r.mu.Unlock()
		<-g.done
		return g.stake, g.err
	}
	g.waiting--
	last := g.waiting == 0
	if last {
		g.r.forget(g)
		g.cancel()
	}
	g.r.mu.Unlock()
	if last {
		<-g.done
	}
	if reason := g.r.line.waiting(ctx); reason != nil {
		return nil, session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", reason))
	}
	return nil, session.Cancelled(ctx)
}
