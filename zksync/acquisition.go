package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/session"
)

// acquire returns the stake on which n units rest, and the pool that has the units.
func (s *Semaphore) acquire(ctx context.Context, n int) (*stake, *pool, error) {
	if err := s.check(n); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, session.Cancelled(ctx)
	}
	ctx, cancel := s.cfg.bound(ctx)
	defer cancel()
	if err := s.fits(ctx, n); err != nil {
		return nil, nil, err
	}
	pl := s.pool(n)
	var st *stake
	err := s.in.line.m.Retry(ctx, func(*session.Session) (err error) {
		for {
			if err := pl.untainted(ctx); err != nil {
				return err
			}
			if st, err = s.stand(ctx, n); err != nil {
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

// fits says at once what would be said when the turn has come.
func (s *Semaphore) fits(ctx context.Context, n int) error {
	if s.size.path == "" {
		return tooMany(n, s.size.n)
	}
	return s.size.m.Do(ctx, func(ctx context.Context, ss *session.Session) error {
		z, err := s.size.get(ctx, ss)
		if err == nil {
			err = tooMany(n, z.n)
		}
		return err
	})
}

// stand waits for its turn among the goroutines of this value, for the lock, and
// for n units.
func (s *Semaphore) stand(ctx context.Context, n int) (*stake, error) {
	if err := s.in.enter(ctx); err != nil {
		return nil, err
	}
	var p *place
	var st *stake
	err := s.in.line.m.Retry(ctx, func(*session.Session) (err error) {
		if p, err = s.in.reach(ctx); err != nil {
			return err
		}
		st, err = s.exchange(ctx, p, n, true)
		if session.ClassOf(err).Again() {
			p.leave()
			p = nil
		}
		return err
	})
	switch {
	case err == nil:
		s.in.spend(p)
		return st, nil
	case p == nil:
		s.in.exit()
	default:
		s.in.abandon(p)
	}
	return nil, err
}

// tryAcquire is acquire without waiting: nil if the units are not free, or others
// are in line.
func (s *Semaphore) tryAcquire(ctx context.Context, n int) (*stake, *pool, error) {
	if err := s.check(n); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, session.Cancelled(ctx)
	}
	if err := s.fits(ctx, n); err != nil {
		return nil, nil, err
	}
	pl := s.pool(n)
	var st *stake
	err := s.in.line.m.Retry(ctx, func(*session.Session) (err error) {
		if pl.tainted() {
			return nil
		}
		if st, err = s.attempt(ctx, n); st == nil {
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
func (s *Semaphore) attempt(ctx context.Context, n int) (*stake, error) {
	p, err := s.in.try(ctx)
	if p == nil {
		return nil, err
	}
	st, err := s.exchange(ctx, p, n, false)
	switch {
	case st != nil:
		s.in.spend(p)
		return st, nil
	case err != nil:
		p.leave()
	default:
		p.withdraw(ctx)
	}
	s.in.local.leave()
	return nil, err
}

// exchange is take for as long as p holds the lock.
func (s *Semaphore) exchange(ctx context.Context, p *place, n int, patient bool) (*stake, error) {
	h := &hold{p: p}
	held := h.context(ctx)
	st, err := s.units.take(ctx, held, p, n, patient)
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
