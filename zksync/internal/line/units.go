package line

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Units has the units of a Semaphore: the local queue of the semaphore's lock, the
// leases, and the holds of one value.
type Units struct {
	path   string
	names  Names
	local  LocalQueue // of the lock
	leases leases
	most   func() (int, error) // see room; computed once

	mu    sync.Mutex
	pools map[int]*Pool // of the holds, by their units
}

// NewUnits returns the units of the semaphore at path. It has n units, or the number in
// the znode at sizeFrom if that is not empty. data is the data of a contender.
func NewUnits(m *session.Manager, path string, names Names, n int, sizeFrom string, data []byte) *Units {
	dir, units := names.semaphore(path, n)
	units.size = &unitSize{m: m, n: n, path: sizeFrom}
	l := &Line{Manager: m, Dir: dir, Rule: LockRule, Class: Exclusive, Op: "acquire", Name: names.Lock, Data: data}
	u := &Units{path: path, names: names, local: LocalQueue{Line: l}, leases: units, pools: make(map[int]*Pool)}
	u.most = sync.OnceValues(u.room)
	return u
}

// List returns the units that are held, and then the contenders in line, regardless of n.
func (u *Units) List(ctx context.Context, s *session.Session, _ int) ([]Listed, error) {
	return u.names.ListSemaphore(ctx, s, u.path)
}

// pool returns the holds of n units.
func (u *Units) pool(n int) *Pool {
	u.mu.Lock()
	defer u.mu.Unlock()
	pl := u.pools[n]
	if pl == nil {
		pl = &Pool{line: u.local.Line}
		u.pools[n] = pl
	}
	return pl
}

// Release ends one hold of n units. It fails with ErrNotHeld, or with the loss.
func (u *Units) Release(n int) error {
	u.mu.Lock()
	pl := u.pools[n] // not pool, which would keep one for each number that a caller makes up
	u.mu.Unlock()
	if pl == nil {
		return znode.ErrNotHeld
	}
	return pl.Release()
}

// Acquire waits for n units. It returns the grant on which they rest, and the pool of
// the hold. If patient is false, Acquire returns no grant when the units are not free, or
// when another caller is in line.
func (u *Units) Acquire(ctx context.Context, n int, patient bool) (g *Grant, pl *Pool, err error) {
	if err := u.fits(ctx, n); err != nil {
		return nil, nil, err
	}
	pl = u.pool(n)
	if patient {
		err = pl.retry(ctx, func() (err error) {
			if g, err = u.stand(ctx, n); g != nil {
				g, err = pl.addOne(ctx, g)
			}
			return err
		})
		return g, pl, err
	}
	err = u.local.Manager.Retry(ctx, func(*session.Session) (err error) {
		// Acquire would wait for the release of the lost holds, so the units are not free.
		if g = nil; pl.tainted() {
			return nil
		}
		if g, err = u.try(ctx, n); g != nil {
			g, err = pl.addOne(ctx, g)
		}
		if err == errTainted {
			return nil
		}
		return err
	})
	return g, pl, err
}

// fits returns at once the error that the request would get at its turn.
func (u *Units) fits(ctx context.Context, n int) (err error) {
	if size := u.leases.size; size.path == "" {
		err = tooMany(n, size.n)
	} else {
		err = size.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
			z, err := size.read(ctx, s, false)
			if err == nil && tooMany(n, z.n) != nil {
				// The server may lag, or its leader may be deposed.
				if err = s.SyncQuorum(ctx, size.path); err == nil {
					z, err = size.read(ctx, s, false)
				}
			}
			if err == nil {
				err = tooMany(n, z.n)
			}
			return err
		})
	}
	if err != nil {
		return err
	}
	most, err := u.most()
	if err == nil && n > most {
		err = fmt.Errorf("%w: %d units, where a transaction has room for %d (see session.WithMaxRequest)", session.ErrTooLarge, n, most)
	}
	return err
}

// room returns the number of units for which the transaction of leases.create has room. A request
// for more units would keep the requests behind it waiting until its turn, and fail then. A
// transaction that need not write to the directory, or check the size, could have a unit more.
func (u *Units) room() (int, error) {
	m, line, dir := u.local.Manager, u.local.Line, u.leases.dir
	unit := &zk.CreateRequest{Path: session.Protect(znode.Join(dir.Path, leaseName)), Data: line.Data, Flags: zk.FlagEphemeralSequential}
	ops := []any{&zk.DeleteRequest{Path: session.Protect(znode.Join(line.Dir.Path, line.Name+"0000000000"))}}
	if dir.Data == nil {
		ops = append(ops, &zk.SetDataRequest{Path: dir.Path})
	}
	if path := u.leases.size.path; path != "" {
		ops = append(ops, &zk.CheckVersionRequest{Path: path})
	}
	none, err := m.MultiSize(ops...)
	if err != nil {
		return 0, err
	}
	one, err := m.MultiSize(append(ops, unit)...)
	return (m.MaxRequest() - none) / max(1, one-none), err
}

// stand waits for the local queue, for the lock, and for n units.
func (u *Units) stand(ctx context.Context, n int) (g *Grant, err error) {
	waited, err := u.local.startTurn(ctx)
	if err != nil {
		return nil, err
	}
	// A new session must not cost this goroutine its turn.
	err = u.local.Manager.Retry(ctx, func(s *session.Session) (err error) {
		for round := 0; ; round++ {
			if err = u.local.reach(ctx); err != nil {
				return err
			}
			if g, err = u.exchange(ctx, n, true); err != errCrowded {
				break
			}
			u.local.shared = nil // it was exchanged
			if err = s.Pause(ctx, round); err != nil {
				return err
			}
		}
		// The session is lost, or the outcome of the exchange is unknown: reach joins the
		// line with another contender.
		if session.ClassOf(err).Again() {
			u.local.discardShared()
		}
		return err
	})
	u.local.endTurn(nil)
	return g, afterTurn(ctx, waited, err)
}

// try is stand without waiting. It returns nil if the units are not free.
func (u *Units) try(ctx context.Context, n int) (*Grant, error) {
	lock, err := u.local.TryAcquire(ctx)
	if lock == nil {
		return nil, err
	}
	g, err := u.exchange(ctx, n, false)
	switch {
	case err == errCrowded:
		err = nil // and the contender was exchanged
	case err != nil:
		u.local.discardShared()
	case g == nil:
		// The units are not free. A contender that stays in line would make the TryAcquire
		// of other processes fail.
		err = znode.AwaitRemoval(ctx, u.local.shared.discard())
	}
	u.local.endTurn(nil)
	return g, err
}

// exchange takes n units in exchange for the shared contender, which holds the lock.
func (u *Units) exchange(ctx context.Context, n int, patient bool) (*Grant, error) {
	c := u.local.shared
	// The guard of the lock's znode is stopped by the exchange. Until then it ends held if
	// another client removes the znode.
	lock := c.grant
	held := lock.Context(ctx)
	g, err := u.leases.take(ctx, held, c, n, patient)
	switch {
	case err == nil || ctx.Err() == nil && (held.Err() == nil || session.ClassOf(err) != session.ClassCancelled):
		// If a server has refused a request after the exchange, or failed, held has ended because the
		// exchange has deleted the contender, which is no reason for the caller.
	case ctx.Err() != nil:
		// held ends with ctx, too, so ctx comes first.
		err = session.CancelledWaiting(ctx, session.WaitReason(err))
	default:
		// The request has failed because held had ended. The cause of held has the reason: the
		// loss of the session, or the removal of the lock's znode.
		err = context.Cause(held)
	}
	lock.end()
	// If ctx has ended the wait for units, the next goroutine of this process keeps the position in
	// line: the wait does not count as time of the turn.
	c.since = time.Now()
	return g, c.confirm(ctx, err)
}
