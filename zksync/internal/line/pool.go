package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Pool has the holds of one value that cannot be told apart when they are released,
// for example the read locks of an RWMutex. A release is counted for the oldest
// grant, except that a Do owns its hold: only the end of that Do releases the hold.
// It follows that
//
//   - no context of a hold may end before the last hold is released, since an earlier
//     release may belong to any hold;
//   - when one grant is lost, any hold of the pool may be the lost one, so the
//     contexts of all holds end. Until all holds have been released, the pool admits
//     no new hold, so that no release of a lost hold can be taken for the release of
//     a new one.
type Pool struct {
	line *Line

	mu       sync.Mutex
	grants   []*Grant // the oldest first
	contexts map[*heldContext]struct{}
	taint    error         // why the pool is lost
	drained  chan struct{} // closed when all holds of a lost pool are released
}

// errTainted says that a pool is lost and waits to be released.
var errTainted = errors.New("zksync: holds that were lost have not been released")

// untainted waits until the pool is not lost.
func (pl *Pool) untainted(ctx context.Context, op string) error {
	var wait *session.Wait
	for {
		pl.mu.Lock()
		err, drained := pl.check(), pl.drained
		pl.mu.Unlock()
		if err == nil {
			return nil
		}
		if wait == nil {
			wait = pl.line.Manager.StartWait(op, pl.line.Dir.Path, func(context.Context) error {
				return fmt.Errorf("for holds of this value that were lost to be released: %w", err)
			})
			defer wait.Stop()
		}
		select {
		case <-drained:
		case <-pl.line.Manager.Done():
			return session.ErrClosed
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// check looks for a lost grant, and returns the loss of the pool, if any; pl.mu is
// held.
func (pl *Pool) check() error {
	for _, g := range pl.grants {
		if pl.taint != nil {
			break
		}
		if err := g.Lost(); err != nil {
			pl.spoil(err)
		}
	}
	return pl.taint
}

// spoil notes a loss; pl.mu is held.
func (pl *Pool) spoil(err error) {
	pl.taint, pl.drained = err, make(chan struct{})
	pl.endContexts(err)
}

// lose notes the loss of a grant, if the grant is still in the pool.
func (pl *Pool) lose(g *Grant, err error) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	// The notice of a loss may come after the last release of the grant.
	if pl.taint == nil && g.left > 0 {
		pl.spoil(err)
	}
}

// add adds a grant with the given number of holds; pl.mu is held. It fails with
// errTainted if the pool is lost, and with the loss of the grant if the grant is lost;
// then the caller must discard the grant, after it has unlocked pl.mu.
func (pl *Pool) add(g *Grant, holds int) error {
	if pl.check() != nil {
		return errTainted
	}
	// A grant that is lost by now must not taint the pool: its holds do not exist yet, and
	// no caller would release them.
	if err := g.Lost(); err != nil {
		return err
	}
	// Under pl.mu: a loss that follow reports from now on waits until the grant is in
	// the pool.
	if err := g.follow(func(err error) { pl.lose(g, err) }); err != nil {
		return err
	}
	g.left = holds
	pl.grants = append(pl.grants, g)
	return nil
}

// Release ends one hold that no Do owns. With the last hold of a grant it deletes the
// znodes of the grant. It fails with ErrNotHeld, or with the loss.
func (pl *Pool) Release() error {
	pl.mu.Lock()
	return pl.releaseLocked(pl.oldest())
}

// Own returns the context of a hold of g that was just acquired, and a function that
// releases this very hold. Release never ends it. The context also ends with the release.
func (pl *Pool) Own(parent context.Context, g *Grant) (held context.Context, release func() error) {
	held, end := pl.newContext(parent, g)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if !g.shared() {
		// A concurrent Release cannot know which hold it ends, and was counted for g, the
		// oldest grant. Its caller's hold rests on another grant, which this Do takes over.
		g = pl.oldest()
	}
	if g != nil {
		g.owned++
	}
	return held, func() error {
		pl.mu.Lock()
		// The context ends before the removal is sent: behind the removal another client may
		// hold. A loss is noted before, since it is the cause that the context should have.
		_ = pl.check()
		end(ErrReleased)
		if g != nil {
			g.owned--
		}
		return pl.releaseLocked(g)
	}
}

// oldest returns the oldest grant with a hold that no Do owns, or nil; pl.mu is held.
func (pl *Pool) oldest() *Grant {
	for _, g := range pl.grants {
		if g.shared() {
			return g
		}
	}
	return nil
}

// releaseLocked ends a hold of a grant; pl.mu is held, and is unlocked. A nil grant says that
// all holds were released.
func (pl *Pool) releaseLocked(g *Grant) error {
	if g == nil {
		pl.mu.Unlock()
		return znode.ErrNotHeld
	}
	// The loss must be found before the hold is counted out: with the last hold, reset
	// forgets the loss.
	lost := pl.check()
	g.left--
	last := g.left == 0
	if last {
		i := slices.Index(pl.grants, g)
		pl.grants = slices.Delete(pl.grants, i, i+1)
		pl.reset()
	}
	others := slices.Clone(pl.grants)
	pl.mu.Unlock()
	switch {
	case !last:
		return lost
	case lost != nil:
		g.discard()
		return lost
	}
	// Not under pl.mu: the request takes time, and a guard that reports a loss waits
	// for pl.mu.
	err := g.remove()
	if znode.IsLoss(err) {
		pl.mu.Lock()
		// The lost hold may be another one than the released hold, unless it was acquired since.
		if pl.taint == nil && slices.ContainsFunc(pl.grants, func(g *Grant) bool { return slices.Contains(others, g) }) {
			pl.spoil(err)
		}
		pl.mu.Unlock()
	}
	return err
}

// reset resets the pool when the last hold is released; pl.mu is held.
func (pl *Pool) reset() {
	if len(pl.grants) > 0 {
		return
	}
	pl.endContexts(ErrReleased)
	if pl.taint != nil {
		pl.taint = nil
		close(pl.drained)
	}
}

// retry calls acquire, again over lost connections and sessions, and again if acquire
// fails with errTainted. Before each call it waits until the pool is not lost.
func (pl *Pool) retry(ctx context.Context, acquire func() error) error {
	return pl.line.Manager.Retry(ctx, func(*session.Session) error {
		for {
			err := pl.untainted(ctx, pl.line.Op)
			if err == nil {
				err = acquire()
			}
			if err != errTainted {
				return err
			}
		}
	})
}

// addOne adds a grant that was acquired, with one hold. If addOne fails, it withdraws the grant.
func (pl *Pool) addOne(ctx context.Context, g *Grant) (*Grant, error) {
	pl.mu.Lock()
	err := pl.add(g, 1)
	pl.mu.Unlock()
	if err != nil {
		return nil, g.withdraw(ctx, err)
	}
	return g, nil
}

// withdraw discards a grant that could not be added to a pool because of err; err is nil if nobody
// waits for the grant any more. Otherwise withdraw waits for the removal: a Try, which returns false if
// the pool is lost, promises that no znode is left.
func (g *Grant) withdraw(ctx context.Context, err error) error {
	gone := g.discard()
	if err == nil {
		return nil
	}
	return cmp.Or(znode.AwaitRemoval(ctx, gone...), err)
}

// tainted reports whether the pool is lost.
func (pl *Pool) tainted() bool {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	return pl.check() != nil
}
