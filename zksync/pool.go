package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A pool has the holds of one value that cannot be told apart when they are released,
// for example the read locks of an RWMutex. A release is counted for the oldest
// stake, except that a Do owns its hold: only the end of that Do releases the hold.
// It follows that
//
//   - no context of a hold may end before the last hold is released, since an earlier
//     release may belong to any hold;
//   - when one stake is lost, any hold of the pool may be the lost one, so the
//     contexts of all holds end. Until all holds have been released, the pool admits
//     no new hold, so that no release of a lost hold can be taken for the release of
//     a new one.
type pool struct {
	m    *session.Manager
	path string

	mu      sync.Mutex
	stakes  []*stake // the longest there first
	tenures map[*tenure]struct{}
	taint   error         // why the pool is lost
	drained chan struct{} // closed when it is not any more
}

// A tenure is the context of a hold that has not ended.
type tenure struct {
	cancel context.CancelCauseFunc
	forget func() bool
}

// errTainted says that a pool is lost and waits to be released.
var errTainted = errors.New("zksync: holds that were lost have not been released")

// untainted waits until the pool is not lost.
func (p *pool) untainted(ctx context.Context) error {
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
			return ErrClosed
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// check looks for a lost stake, and returns the loss of the pool, if any; p.mu is
// held.
func (p *pool) check() error {
	for _, st := range p.stakes {
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
func (p *pool) spoil(err error) {
	p.taint, p.drained = err, make(chan struct{})
	p.endTenures(err)
}

// lose notes the loss of a stake, if it is still one of the pool's.
func (p *pool) lose(st *stake, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taint == nil && st.left > 0 {
		p.spoil(err)
	}
}

// add adds a stake with the given number of holds. It fails with errTainted if the
// pool is lost, and with the error of stake.lost if the stake is lost; then the
// caller must call stake.leave. p.mu is held.
func (p *pool) add(st *stake, holds int) error {
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
	p.stakes = append(p.stakes, st)
	return nil
}

// own makes one hold of st that was just acquired a hold that release never ends,
// and returns the stake to give to releaseOwn. That may be another stake, if a release
// was counted for st meanwhile; it is nil if all holds were released.
func (p *pool) own(st *stake) *stake {
	p.mu.Lock()
	defer p.mu.Unlock()
	if st.left <= st.owned {
		i := slices.IndexFunc(p.stakes, (*stake).shared)
		if i < 0 {
			return nil
		}
		st = p.stakes[i]
	}
	st.owned++
	return st
}

// release ends one hold that no Do owns, and with the last hold of a stake removes
// the stake's znodes. It fails with ErrNotHeld, or with the loss.
func (p *pool) release() error {
	p.mu.Lock()
	i := slices.IndexFunc(p.stakes, (*stake).shared)
	if i < 0 {
		p.mu.Unlock()
		return ErrNotHeld
	}
	return p.releaseLocked(i)
}

// releaseOwn is release for the hold that own returned.
func (p *pool) releaseOwn(st *stake) error {
	if st == nil {
		return ErrNotHeld
	}
	p.mu.Lock()
	st.owned--
	return p.releaseLocked(slices.Index(p.stakes, st))
}

// releaseLocked ends a hold of the stake at i; p.mu is held, and is unlocked.
func (p *pool) releaseLocked(i int) error {
	lost := p.check()
	st := p.stakes[i]
	st.left--
	last := st.left == 0
	if last {
		p.stakes = slices.Delete(p.stakes, i, i+1)
		p.settle()
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
		if len(p.stakes) > 0 && p.taint == nil {
			p.spoil(err) // the lost hold may be another one than the released hold
		}
		p.mu.Unlock()
	}
	return err
}

// settle resets the pool when the last hold is released; p.mu is held.
func (p *pool) settle() {
	if len(p.stakes) > 0 {
		return
	}
	p.endTenures(ErrReleased)
	if p.taint != nil {
		p.taint = nil
		close(p.drained)
	}
}

// context derives the context of a hold from the caller's context.
func (p *pool) context(parent context.Context, token int64) (context.Context, *tenure) {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, tokenKey{}, token))
	t := &tenure{cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.check()
	if err == nil && len(p.stakes) == 0 {
		err = ErrReleased // by a caller without a hold
	}
	if err != nil {
		cancel(err)
		return ctx, t
	}
	if p.tenures == nil {
		p.tenures = make(map[*tenure]struct{})
	}
	p.tenures[t] = struct{}{}
	t.forget = context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.tenures, t)
	})
	return ctx, t
}

// endTenures ends the contexts of all holds; p.mu is held.
func (p *pool) endTenures(cause error) {
	for t := range p.tenures {
		t.forget()
		t.cancel(cause)
	}
	clear(p.tenures)
}

// addOne is add for a stake of one hold.
func (p *pool) addOne(st *stake) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(st, 1)
}

// tainted says whether the pool is lost.
func (p *pool) tainted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check() != nil
}
