package simulation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/zksync"
)

var rwmutexes = &workload{name: "rwmutex", start: func(w *world) func(*simClient, action) error {
	const path = "/locks/rw"
	h := w.object("rwmutex", units(1<<20))
	var res resource
	values := each(w, func(manager int) *zksync.RWMutex {
		rw := zksync.NewRWMutex(w.managers[manager], path)
		w.probe("the write lock", rw.Lock, rw.Unlock)
		w.probe("the read lock", rw.RLock, rw.RUnlock)
		return rw
	})
	w.dirs = append(w.dirs, path)
	return func(c *simClient, a action) error {
		rw := values(c)
		write := tenancy{h: h, value: rw, what: take{-1}, release: rw.Unlock, res: &res, fenced: true}
		read := tenancy{h: h, value: rw, what: take{1}, release: rw.RUnlock, fenced: true}
		switch {
		case a.kind < 20:
			write.acquire = patiently(rw.LockContext)
			return c.hold(a, write)
		case a.kind < 27:
			write.acquire = rw.TryLockContext
			return c.hold(a, write)
		case a.kind < 32:
			return c.do(a, write, rw.Do)
		case a.kind < 50:
			return c.writeThenRead(a, write, read, rw)
		case a.kind < 60:
			read.acquire = rw.TryRLockContext
			return c.hold(a, read)
		default:
			read.acquire = patiently(rw.RLockContext)
			return c.hold(a, read)
		}
	}
}}

// writeThenRead downgrades a write hold to a read hold, which is one step of the history.
func (c *simClient) writeThenRead(a action, write, read tenancy, rw *zksync.RWMutex) error {
	ctx, cancel := c.context(a)
	defer cancel()
	h := write.h
	called := h.clock.Add(1)
	written, err := rw.LockContext(ctx)
	if err != nil {
		if ctx.Err() != nil && gaveUp(err) {
			return nil
		}
		return fmt.Errorf("acquire: %w", err)
	}
	returned := h.clock.Add(1)
	token, _ := zksync.Token(written)
	g := grant{token, rw}
	if err := c.use(action{stay: a.stay / 8}, write, written, token); err != nil {
		return err
	}
	lowering := h.clock.Add(1)
	if written.Err() != nil {
		lowering = returned // or at any later time
	}
	var held context.Context
	failed := error(nil)
	lowered := int64(0)
	read.acquire = func(ctx context.Context) (context.Context, bool, error) {
		held, failed = rw.DowngradeContext(ctx)
		lowered = h.clock.Add(1)
		return held, failed == nil, nil
	}
	// The history records the two holds as one hold with three steps.
	read.record = func(_, _, leaving, gone int64, err error) {
		if !h.doubtful(c.manager, called, returned, err) {
			h.noteResult(c.number, take{-1}, g, called, returned)
			h.note(c.number, lower{}, lowering, lowered)
			h.note(c.number, give{1}, h.end(c.manager, returned, leaving), gone)
		}
	}
	err = c.hold(a, read)
	if failed != nil {
		if !h.doubtful(c.manager, called, returned, failed) {
			h.noteResult(c.number, take{-1}, g, called, returned)
			h.note(c.number, give{-1}, h.end(c.manager, returned, lowering), lowered)
		}
		if ctx.Err() == nil && !errors.Is(failed, zksync.ErrLost) {
			return fmt.Errorf("downgrade: %w", failed)
		}
	}
	return err
}

var semaphores = &workload{name: "semaphore", start: func(w *world) func(*simClient, action) error {
	const path = "/locks/s"
	const size = 4
	h := w.object("semaphore", units(size))
	values := each(w, func(manager int) *zksync.Semaphore {
		s := zksync.NewSemaphore(w.managers[manager], path, size)
		w.probe("all of the semaphore", func(ctx context.Context) error { return s.Acquire(ctx, size) }, func() error { return s.Release(size) })
		return s
	})
	w.dirs = append(w.dirs, path+"/locks", path+"/leases")
	return func(c *simClient, a action) error {
		s := values(c)
		y := tenancy{h: h, value: s, what: take{a.units}, release: func() error { return s.Release(a.units) }}
		y.acquire = patiently(func(ctx context.Context) (context.Context, error) { return s.AcquireContext(ctx, a.units) })
		if a.kind < 20 {
			y.acquire = func(ctx context.Context) (context.Context, bool, error) { return s.TryAcquireContext(ctx, a.units) }
		}
		return c.hold(a, y)
	}
}}

var elections = &workload{name: "election", start: func(w *world) func(*simClient, action) error {
	const path = "/elections/e"
	h := w.object("election", units(1))
	var res resource
	value := make([]*zksync.Election, len(w.plan.clients))
	for i := range value {
		value[i] = zksync.NewElection(w.managers[i%w.plan.managers], path, zksync.WithID(fmt.Sprint("node-", i)))
		w.probe("leadership", func(ctx context.Context) error { _, err := value[i].Campaign(ctx); return err }, value[i].Resign)
	}
	w.dirs = append(w.dirs, path)
	return func(c *simClient, a action) error {
		e := value[c.number]
		y := tenancy{h: h, value: e, what: take{-1}, release: e.Resign, res: &res, fenced: true}
		if a.kind < 50 {
			y.acquire = patiently(e.Campaign)
			return c.hold(a, y)
		}
		return c.lead(a, y, e)
	}
}}

// lead makes a hold with Election.Run, which campaigns again after a loss until the work is done.
func (c *simClient) lead(a action, y tenancy, e *zksync.Election) error {
	ctx, cancel := c.context(a)
	defer cancel()
	type term struct {
		held context.Context
		over chan bool // receives whether the hold was lost
	}
	terms, done := make(chan term), make(chan error, 1)
	go func() {
		done <- e.Run(ctx, func(held context.Context) error {
			t := term{held, make(chan bool)}
			terms <- t
			if <-t.over {
				return errors.New("lost")
			}
			return nil
		})
		close(done)
	}()
	for {
		ended := false
		var t term
		y.silent = true
		y.acquire = func(context.Context) (context.Context, bool, error) {
			select {
			case t = <-terms:
				return t.held, true, nil
			case err := <-done:
				ended = true
				// Run returns only the cause of ctx.
				if err != nil && !(ctx.Err() != nil && (gaveUp(err) || errors.Is(err, errSibling))) {
					return nil, false, err
				}
				return nil, false, nil
			}
		}
		y.release = func() error {
			lost := lossOf(t.held)
			t.over <- lost
			if lost {
				return zksync.ErrLost
			}
			return nil
		}
		if err := c.hold(action{stay: a.stay, stall: a.stall}, y); err != nil {
			cancel()
			return err
		}
		if ended {
			return nil
		}
	}
}
