package line

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Units has the units of a Semaphore: the local queue of the semaphore's lock, the
// leases, and the holds of one value.
type Units struct {
	path   string
	local  LocalQueue // of the lock
	leases Leases

	mu    sync.Mutex
	pools map[int]*Pool // of the holds, by their units
}

// NewUnits returns the units of the semaphore at path. l is the line of its lock. The
// semaphore has n units, or the number in the znode at sizeFrom if that is not empty.
func NewUnits(l *Line, path string, leases Leases, n int, sizeFrom string) *Units {
	leases.size = &unitSize{m: l.Manager, n: n, path: sizeFrom}
	return &Units{path: path, local: LocalQueue{Line: l}, leases: leases, pools: make(map[int]*Pool)}
}

// Contenders returns the units that are held, and the contenders in line, as of the
// time of the call.
func (u *Units) Contenders(ctx context.Context) ([]Listed, error) {
	return znode.ReadCommitted(ctx, u.local.Line.Manager, u.path, func(ctx context.Context, s *session.Session) ([]Listed, error) {
		return u.leases.List(ctx, s, u.local.Line.Dir.Path)
	})
}

// pool returns the holds of n units.
func (u *Units) pool(n int) *Pool {
	u.mu.Lock()
	defer u.mu.Unlock()
	pl := u.pools[n]
	if pl == nil {
		pl = &Pool{m: u.local.Line.Manager, path: u.path}
		u.pools[n] = pl
	}
	return pl
}

// Release ends one hold of n units. It fails with errNotHeld, or with the loss.
func (u *Units) Release(n int) error {
	u.mu.Lock()
	pl := u.pools[n]
	u.mu.Unlock()
	if pl == nil {
		return ErrNotHeld
	}
	return pl.Release()
}

// Acquire waits for n units. It returns the grant on which they rest, and the pool of
// the hold.
func (u *Units) Acquire(ctx context.Context, n int) (*Grant, *Pool, error) {
	if err := u.fits(ctx, n); err != nil {
		return nil, nil, err
	}
	pl := u.pool(n)
	var st *Grant
	err := u.local.Line.Manager.Retry(ctx, func(*session.Session) (err error) {
		for {
			if err := pl.untainted(ctx); err != nil {
				return err
			}
			if st, err = u.stand(ctx, n); err != nil {
				return err
			}
			if err = pl.addOne(st); err == nil {
				return nil
			}
			st.leave()
			if err != errTainted {
				return err
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return st, pl, nil
}

// fits returns at once the error that the request would get at its turn.
func (u *Units) fits(ctx context.Context, n int) error {
	size := u.leases.size
	if size.path == "" {
		return tooMany(n, size.n)
	}
	return size.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		z, err := size.read(ctx, s, false)
		if err == nil {
			err = tooMany(n, z.n)
		}
		return err
	})
}

// stand waits for the local queue, for the lock, and for n units.
func (u *Units) stand(ctx context.Context, n int) (*Grant, error) {
	if err := u.local.join(ctx); err != nil {
		return nil, err
	}
	var p *contender
	var st *Grant
	err := u.local.Line.Manager.Retry(ctx, func(*session.Session) (err error) {
		if p, err = u.local.reach(ctx); err != nil {
			return err
		}
		st, err = u.exchange(ctx, p, n, true)
		if session.ClassOf(err).Again() {
			p.leave()
			p = nil
		}
		return err
	})
	switch {
	case err == nil:
		u.local.spend(p)
		return st, nil
	case p == nil:
		u.local.leave()
	default:
		u.local.abandon(p)
	}
	return nil, err
}

// TryAcquire is acquire without waiting. It returns nil if the units are not free, or
// if another caller is in line.
func (u *Units) TryAcquire(ctx context.Context, n int) (*Grant, *Pool, error) {
	if err := u.fits(ctx, n); err != nil {
		return nil, nil, err
	}
	pl := u.pool(n)
	var st *Grant
	err := u.local.Line.Manager.Retry(ctx, func(*session.Session) (err error) {
		if pl.tainted() {
			return nil
		}
		if st, err = u.attempt(ctx, n); st == nil {
			return err
		}
		if err = pl.addOne(st); err == nil {
			return nil
		}
		st.leave()
		if st = nil; err == errTainted {
			return nil
		}
		return err
	})
	return st, pl, err
}

// attempt is stand without waiting.
func (u *Units) attempt(ctx context.Context, n int) (*Grant, error) {
	p, err := u.local.try(ctx)
	if p == nil {
		return nil, err
	}
	st, err := u.exchange(ctx, p, n, false)
	switch {
	case st != nil:
		u.local.spend(p)
		return st, nil
	case err != nil:
		p.leave()
	default:
		p.withdraw(ctx)
	}
	u.local.turn.unlock()
	return nil, err
}

// exchange takes n units in exchange for p, which holds the lock.
func (u *Units) exchange(ctx context.Context, p *contender, n int, patient bool) (*Grant, error) {
	h := &Hold{p: p}
	held := h.Context(ctx)
	st, err := u.leases.take(ctx, held, p, n, patient)
	switch {
	case err == nil || ctx.Err() == nil && held.Err() == nil:
	case ctx.Err() != nil:
		err = session.CancelledWaiting(ctx, session.WaitReason(err))
	default:
		err = context.Cause(held)
	}
	h.end(ErrReleased)
	return st, p.confirm(ctx, err)
}
