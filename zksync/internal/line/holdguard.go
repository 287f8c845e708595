package line

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// guardAfter is the time after which the znode of a hold is watched. Most holds are
// shorter, and need no request for the watch.
const guardAfter = 100 * time.Millisecond

// A holdGuard notices when another client removes the znode of a hold. It does not notice
// the loss of the session: its callers check the session first.
type holdGuard struct {
	s      *session.Session
	path   string
	watch  *session.Watch // from the time of waiting, if any
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	err    error
	onLoss func(error) // of the present hold
	onGone func()      // called once when the znode is gone; nil for nothing
}

// start guards a znode. The watch on it may be nil.
func (g *holdGuard) start(s *session.Session, path string, w *session.Watch) {
	g.s, g.path, g.watch, g.done = s, path, w, make(chan struct{})
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.timer = time.AfterFunc(guardAfter, g.run)
}

func (g *holdGuard) run() {
	defer close(g.done)
	for refusals := 0; g.ctx.Err() == nil; {
		if g.watch == nil {
			_, stat, w, err := g.s.WatchData(g.ctx, g.path)
			switch class := session.ClassOf(err); {
			case class == session.ClassNoNode:
				g.lose(session.ErrRemoved)
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
			case stat.EphemeralOwner != g.s.ID():
				// Another candidate has created the znode again under the same name.
				w.Stop()
				g.lose(session.ErrRemoved)
				return
			}
			g.watch, refusals = w, 0
		}
		select {
		case ev := <-g.watch.Events():
			switch ev.Type {
			case zk.EventNodeDeleted:
				g.lose(session.ErrRemoved)
				return
			case zk.EventNotWatching:
				return
			}
			// The data has changed. A watch fires once, so read again.
			g.watch = nil
		case <-g.ctx.Done():
		}
	}
}

func (g *holdGuard) lose(err error) {
	// err is set in the same critical section in which follow would set onLoss: so a new
	// holder either is called or gets err from follow.
	g.mu.Lock()
	g.err = err
	onLoss, onGone := g.onLoss, g.onGone
	g.mu.Unlock()
	// Both functions are called without the mutex: onLoss locks the pool's mutex, under
	// which lost is called.
	if onGone != nil {
		onGone()
	}
	if onLoss != nil {
		onLoss(err)
	}
}

// lost returns the loss of the znode, nil if none is known.
func (g *holdGuard) lost() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// follow sets the function to call at a loss, nil for none. If the loss has happened
// already, follow returns it.
func (g *holdGuard) follow(onLoss func(error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onLoss = onLoss
	return g.err
}

// whenGone sets the function to call when another client has removed the znode.
func (g *holdGuard) whenGone(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onGone = f
}

// stop ends the guard. lost returns the same as before. It may be called more than once.
func (g *holdGuard) stop() {
	if g.ctx.Err() != nil {
		return
	}
	g.cancel()
	if !g.timer.Stop() {
		// run has begun. It may have to stop a watch that it has just armed.
		<-g.done
	}
	if g.watch != nil {
		g.watch.Stop()
	}
}
