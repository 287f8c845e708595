package line

import (
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
	m    *session.Manager
	path string

	mu       sync.Mutex
	grants   []*Grant // the oldest first
	contexts map[*heldContext]struct{}
	taint    error         // why the pool is lost
	drained  chan struct{} // closed when all holds of a lost pool are released
}

// A heldContext is the context of a hold that has not ended.
type heldContext struct {
	cancel context.CancelCauseFunc
	forget func() bool
}

// errTainted says that a pool is lost and waits to be released.
var errTainted = errors.New("zksync: holds that were lost have not been released")

// untainted waits until the pool is not lost.
func (p *Pool) untainted(ctx context.Context) error {
	var wait *session.Wait
	for {
		p.mu.Lock()
		err, drained := p.check(), p.drained
		p.mu.Unlock()
		if err == nil {
			return nil
		}
		if wait == nil {
			wait = p.m.StartWait("acquire", p.path, func(context.Context) error {
				return fmt.Errorf("for holds of this value that were lost to be released: %w", err)
			})
			defer wait.Stop()
		}
		select {
		case <-drained:
		case <-p.m.Done():
			return session.ErrClosed
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// check looks for a lost grant, and returns the loss of the pool, if any; p.mu is
// held.
func (p *Pool) check() error {
	for _, st := range p.grants {
		if p.taint != nil {
			break
		}
		if err := st.lost(); err != nil {
			p.spoil(err)
		}
	}
	return p.taint
}

// spoil notes a loss; p.mu is held.
func (p *Pool) spoil(err error) {
	p.taint, p.drained = err, make(chan struct{})
	p.endContexts(err)
}

// lose notes the loss of a grant, if the grant is still in the pool.
func (p *Pool) lose(st *Grant, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taint == nil && st.left > 0 {
		p.spoil(err)
	}
}

// add adds a grant with the given number of holds. It fails with errTainted if the
// pool is lost, and with the error of grant.lost if the grant is lost; then the
// caller must call grant.leave. p.mu is held.
func (p *Pool) add(st *Grant, holds int) error {
	if p.check() != nil {
		return errTainted
	}
	if err := st.lost(); err != nil {
		return err
	}
	if err := st.follow(func(err error) { p.lose(st, err) }); err != nil {
		return err
	}
	st.left = holds
	p.grants = append(p.grants, st)
	return nil
}

// Own makes one hold of st that was just acquired a hold that Release never ends, and
// returns the grant for ReleaseOwn. That may be another grant, if a Release was counted
// for st meanwhile. It is nil if all holds were released.
func (p *Pool) Own(st *Grant) *Grant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st.left <= st.owned {
		i := slices.IndexFunc(p.grants, (*Grant).shared)
		if i < 0 {
			return nil
		}
		st = p.grants[i]
	}
	st.owned++
	return st
}

// Release ends one hold that no Do owns. With the last hold of a grant it deletes the
// znodes of the grant. It fails with ErrNotHeld, or with the loss.
func (p *Pool) Release() error {
	p.mu.Lock()
	i := slices.IndexFunc(p.grants, (*Grant).shared)
	if i < 0 {
		p.mu.Unlock()
		return ErrNotHeld
	}
	return p.releaseLocked(i)
}

// ReleaseOwn is Release for the hold that Own returned.
func (p *Pool) ReleaseOwn(st *Grant) error {
	if st == nil {
		return ErrNotHeld
	}
	p.mu.Lock()
	st.owned--
	return p.releaseLocked(slices.Index(p.grants, st))
}

// releaseLocked ends a hold of the grant at i; p.mu is held, and is unlocked.
func (p *Pool) releaseLocked(i int) error {
	lost := p.check()
	st := p.grants[i]
	st.left--
	last := st.left == 0
	if last {
		p.grants = slices.Delete(p.grants, i, i+1)
		p.reset()
	}
	p.mu.Unlock()
	switch {
	case !last:
		return lost
	case lost != nil:
		st.leave()
		return lost
	}
	err := st.release()
	if znode.IsLoss(err) {
		p.mu.Lock()
		if len(p.grants) > 0 && p.taint == nil {
			p.spoil(err) // the lost hold may be another one than the released hold
		}
		p.mu.Unlock()
	}
	return err
}

// reset resets the pool when the last hold is released; p.mu is held.
func (p *Pool) reset() {
	if len(p.grants) > 0 {
		return
	}
	p.endContexts(ErrReleased)
	if p.taint != nil {
		p.taint = nil
		close(p.drained)
	}
}

// Context derives the context of a hold from the caller's context. end ends the context
// of this hold alone.
func (p *Pool) Context(parent context.Context, st *Grant) (held context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, tokenKey{}, st.token))
	t := &heldContext{cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.check()
	if err == nil && len(p.grants) == 0 {
		err = ErrReleased // by a caller without a hold
	}
	if err != nil {
		cancel(err)
		return ctx, cancel
	}
	if p.contexts == nil {
		p.contexts = make(map[*heldContext]struct{})
	}
	p.contexts[t] = struct{}{}
	t.forget = context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.contexts, t)
	})
	return ctx, cancel
}

// endContexts ends the contexts of all holds; p.mu is held.
func (p *Pool) endContexts(cause error) {
	for t := range p.contexts {
		t.forget()
		t.cancel(cause)
	}
	clear(p.contexts)
}

// addOne is add for a grant of one hold.
func (p *Pool) addOne(st *Grant) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(st, 1)
}

// tainted reports whether the pool is lost.
func (p *Pool) tainted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check() != nil
}
