package line

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// guardAfter is the time after which the znodes of a hold are watched. Most holds are
// shorter, and need no request for the watch.
const guardAfter = 100 * time.Millisecond

// A holdGuard notices when another client removes a znode of a hold. It does not notice
// the loss of the session: its callers check the session first.
type holdGuard struct {
	s      *session.Session
	paths  []string       // of the znodes
	own    *session.Watch // on the first znode, from the time of waiting, if any
	onGone func()
	timer  *time.Timer
	done   chan struct{} // closed when run has ended

	ctx    context.Context // ends with ErrRemoved, or when the guard is stopped
	cancel context.CancelCauseFunc
}

// newHoldGuard guards znodes. When another client has removed one of them, the guard
// calls onGone and then notes the loss. own is a watch on the first znode, or nil.
func newHoldGuard(s *session.Session, paths []string, own *session.Watch, onGone func()) *holdGuard {
	g := &holdGuard{s: s, paths: paths, own: own, onGone: onGone, done: make(chan struct{})}
	// The end of the caller's ctx does not end the hold, and so it does not end the guard.
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.timer = time.AfterFunc(guardAfter, g.run)
	return g
}

func (g *holdGuard) run() {
	defer close(g.done)
	var rest sync.WaitGroup
	for _, path := range g.paths[1:] {
		rest.Go(func() { g.guard(path, nil) })
	}
	g.guard(g.paths[0], g.own)
	rest.Wait()
}

// guard watches one znode. The watch w on it may be nil.
func (g *holdGuard) guard(path string, w *session.Watch) {
	defer func() { w.Stop() }()
	for refusals := 0; g.ctx.Err() == nil; {
		if w == nil {
			_, stat, armed, err := g.s.WatchData(g.ctx, path)
			switch class := session.ClassOf(err); {
			case class == session.ClassNoNode:
				g.lose()
				return
			case class == session.ClassUnknown:
				// The server had an internal error. Without a watch the holder would not
				// learn of a removal. The next attempt returns the reason if the pause was
				// cut short.
				_ = g.s.Pause(g.ctx, refusals)
				refusals++
				continue
			case err != nil:
				// A guard without a watch is of no use, but the lease still ends the hold when
				// the session is lost.
				return // the guard was stopped, the session has ended, or the znode may not be read
			}
			w, refusals = armed, 0
			if stat.EphemeralOwner != g.s.ID() {
				// Another candidate has created the znode again under the same name.
				g.lose()
				return
			}
		}
		select {
		case ev := <-w.Events():
			switch ev.Type {
			case zk.EventNodeDeleted:
				g.lose()
				return
			case zk.EventNotWatching:
				return
			}
			// The data has changed. A watch fires once, so read again.
			w = nil
		case <-g.ctx.Done():
		}
	}
}

// lose notes that another client has removed a znode.
func (g *holdGuard) lose() {
	// Before the holder can know of the loss: its release relies on what onGone has done.
	g.onGone()
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
