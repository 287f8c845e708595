package line

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// guardAfter is the time after which the znodes of a hold are watched. Most holds are
// shorter, and need no request for the watch.
const guardAfter = 100 * time.Millisecond

// A holdGuard notices when another client removes a znode of a hold. It does not notice
// the loss of the session: its callers check the session first.
type holdGuard struct {
	s     *session.Session
	lease *session.Lease // of the hold; nil if the guard guards no hold
	paths []string       // of the znodes
	own   *session.Watch // on the first znode, from the time of waiting, if any
	// owns reports whether a znode at the first path is the znode of the hold. It is nil if no other client creates a
	// znode there.
	owns   func(*zk.Stat) bool
	onGone func()
	timer  *time.Timer
	done   chan struct{} // closed when run has ended

	ctx    context.Context // ends with ErrRemoved, or when the guard is stopped
	cancel context.CancelCauseFunc
}

// newHoldGuard guards znodes. When another client has removed one of them, the guard
// notes the loss and then calls onGone. own is a watch on the first znode, or nil.
func newHoldGuard(s *session.Session, lease *session.Lease, paths []string, own *session.Watch, owns func(*zk.Stat) bool, onGone func()) *holdGuard {
	g := &holdGuard{s: s, lease: lease, paths: paths, own: own, owns: owns, onGone: onGone, done: make(chan struct{})}
	// The end of the caller's ctx does not end the hold, and so it does not end the guard.
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.timer = time.AfterFunc(guardAfter, g.run)
	return g
}

func (g *holdGuard) run() {
	defer close(g.done)
	if g.lease != nil {
		// The session's transactions check the first znode, and may find that it is gone while
		// its reads are refused or its watch is late.
		g.lease.NotifyGone(func() { g.cancel(session.ErrRemoved) })
	}
	var rest sync.WaitGroup
	for _, path := range g.paths[1:] {
		rest.Go(func() { g.guard(path, nil) })
	}
	g.guard(g.paths[0], g.own)
	rest.Wait()
	if g.lost() != nil {
		// Every release stops the guard first, and relies on what onGone has done.
		g.onGone()
	}
}

// guard watches one znode. The watch w on it may be nil.
func (g *holdGuard) guard(path string, w *session.Watch) {
	defer func() { w.Stop() }()
	read := znode.WatchData
	for refusals := 0; g.ctx.Err() == nil; {
		if w == nil {
			data, stat, armed, err := read(g.ctx, g.s, path)
			switch session.ClassOf(err) {
			case session.ClassOK:
			case session.ClassNoNode:
				g.lose()
				return
			case session.ClassCancelled, session.ClassLost, session.ClassClosed:
				return // the guard was stopped, or the session has ended
			default:
				// No refusal lasts for ever: an ACL may be wrong for a moment. Without a watch the
				// holder would not learn of a removal.
				g.pause(refusals)
				refusals++
				continue
			}
			w, refusals = armed, 0
			if len(data) < int(stat.DataLength) {
				read = znode.WatchStat // the data are too large, and would be again
			}
			if stat.EphemeralOwner != g.s.ID() || g.owns != nil && !g.owns(stat) {
				// A znode of another candidate, or of another part of the program, has the same name.
				g.lose()
				return
			}
		}
		var again <-chan time.Time
		if g.owns != nil {
			// A server hides the removal from a client that may not read the znode any more. The checks of the session's
			// transactions take the znode of the next leader for ours then.
			again = time.After(g.s.Timeout())
		}
		select {
		case ev := <-w.Events():
			if ev.Type == zk.EventNodeDeleted {
				g.lose()
				return
			}
			// The data has changed. A watch fires once, so read again. If the session has ended,
			// the read says so.
			w = nil
		case <-again:
			w.Stop()
			w = nil
		case <-g.ctx.Done():
		}
	}
}

// pause waits before a read that was refused is repeated. In the long run a hold makes about one
// such read a second, regardless of the number of its znodes.
func (g *holdGuard) pause(refusals int) {
	for range g.paths {
		// The next read returns the reason if a pause was cut short.
		_ = g.s.Pause(g.ctx, refusals)
	}
}

// lose notes that another client has removed a znode.
func (g *holdGuard) lose() {
	// Before the holder can know of the loss and end the lease: the observer is told of a loss.
	if g.lease != nil {
		g.lease.Lose()
	}
	g.cancel(session.ErrRemoved)
}

// lost returns the loss of a znode, nil if none is known.
func (g *holdGuard) lost() error {
	// stop ends the context with another cause, and does not change the cause of a loss.
	if cause := context.Cause(g.ctx); cause == session.ErrRemoved {
		return cause
	}
	return nil
}

// whenLost calls f when a znode is lost, in a goroutine, until stop is called. A call that
// has begun continues.
func (g *holdGuard) whenLost(f func(error)) (stop func() bool) {
	return context.AfterFunc(g.ctx, func() {
		if err := g.lost(); err != nil {
			f(err)
		}
	})
}

// stop ends the guard. lost returns the same as before. It may be called more than once.
func (g *holdGuard) stop() {
	g.cancel(nil)
	if g.timer.Stop() {
		g.own.Stop() // run, which would stop the watch, never begins
		close(g.done)
	}
	<-g.done
}
