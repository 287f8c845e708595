package line

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// The Leases of a semaphore are the znodes of its held units, one for each unit. Only
// the holder of the semaphore's lock creates leases, in the transaction that releases
// the lock: so its count of the leases is still true then.
type Leases struct {
	Dir    *znode.Directory
	IsUnit func(name string) bool // recognises the name of a lease
	size   *unitSize
}

const leaseName = "lease-"

var leaseMarks = marks{"-" + leaseName}

func IsLease(name string) bool {
	_, _, ok := leaseMarks.parse(name)
	return ok
}

// take waits until n units are free and exchanges the contender p, which holds the lock,
// for n leases. If patient is false, it returns nil when the units are not free. After a
// failure the contender may be gone: see contender.unsure. held is the context of the
// lock, which also ends when this exchange deletes the contender.
func (l *Leases) take(ctx, held context.Context, p *contender, n int, patient bool) (*Grant, error) {
	var z *sizeRead
	defer func() { z.unwatch() }()
	var wait *session.Wait
	var units, size atomic.Int64 // as counted last
	for round := 0; ; {
		if z == nil {
			var err error
			if z, err = l.size.read(held, p.s, patient); err != nil {
				return nil, err
			}
		}
		if err := tooMany(n, z.n); err != nil {
			return nil, err
		}
		taken, w, err := l.count(held, p.s, patient)
		if session.ClassOf(err) == session.ClassNoNode {
			err = l.Dir.Create(held, p.s)
			if err == nil {
				err = p.s.Pause(held, round)
			}
			if err == nil {
				round++
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if n <= z.n-taken {
			if w != nil {
				w.Stop()
			}
			st, err := l.create(ctx, p, n, z)
			if err == znode.ErrExhausted {
				if err = l.Dir.MarkExhausted(held, p.s); err != nil {
					return nil, err
				}
				var again bool
				if again, err = l.Dir.Recreate(held, p.s, patient); !again {
					return nil, err
				}
			}
			if st != nil || err != nil {
				return st, err
			}
			if err := p.s.Pause(held, round); err != nil {
				return nil, err
			}
			round++
			z.unwatch()
			z = nil
			continue
		}
		if !patient {
			return nil, nil
		}
		if wait == nil {
			wait = p.line.Manager.StartWait("acquire", l.Dir.Path, func(context.Context) error {
				return fmt.Errorf("as the next in line, for %d of the semaphore's units: others hold %d of %d", n, units.Load(), size.Load())
			})
			defer wait.Stop()
		}
		units.Store(int64(taken))
		size.Store(int64(z.n))
		select {
		case <-w.Events():
		case <-z.events():
			z = nil
			w.Stop()
		case <-held.Done():
			w.Stop()
			return nil, wait.Cancelled(held)
		}
	}
}

// count returns the number of units that are held.
func (l *Leases) count(ctx context.Context, s *session.Session, watched bool) (int, *session.Watch, error) {
	var names []string
	var w *session.Watch
	var err error
	if watched {
		names, _, w, err = s.WatchChildren(ctx, l.Dir.Path)
	} else {
		names, _, err = s.Children(ctx, l.Dir.Path)
	}
	held := 0
	for _, name := range names {
		if l.IsUnit(name) {
			held++
		}
	}
	return held, w, err
}

// create creates n leases and deletes the contender in one transaction. It returns nil
// if a znode has changed, so that the caller should read again.
func (l *Leases) create(ctx context.Context, p *contender, n int, z *sizeRead) (*Grant, error) {
	touch, err := l.Dir.Writable(ctx, p.s)
	if err != nil {
		return nil, err
	}
	ops := []any{&zk.DeleteRequest{Path: p.path, Version: -1}}
	if z.version >= 0 {
		ops = append(ops, &zk.CheckVersionRequest{Path: l.size.path, Version: z.version})
	}
	before := len(ops)
	path := session.Protect(znode.Join(l.Dir.Path, leaseName))
	for range n {
		ops = append(ops, &zk.CreateRequest{Path: path, Data: p.line.Data, Flags: zk.FlagEphemeralSequential})
	}
	if touch {
		// Its result has the zxid, which is the token.
		ops = append(ops, &zk.SetDataRequest{Path: l.Dir.Path, Data: []byte{}, Version: -1})
	}
	p.unsure = true
	paths, results, err := p.s.MultiProtected(ctx, ops...)
	if err == nil {
		return l.created(ctx, p, n, paths, results, touch)
	}
	failed, class := session.FailedOp(results), session.ClassOf(err)
	p.unsure = failed < 0 || failed == 0 && class == session.ClassNoNode
	switch {
	case failed < 0:
		return nil, err
	case failed == 0 && class == session.ClassNoNode:
		return nil, session.ErrRemoved
	case failed > 0 && failed < before:
		return nil, nil // the size
	case class == session.ClassNoNode:
		return nil, l.Dir.Create(ctx, p.s)
	case class == session.ClassNodeExists:
		return nil, znode.ErrExhausted
	case class == session.ClassNoAuth && touch && failed == len(ops)-1:
		l.Dir.Forbid()
		return nil, nil
	}
	return nil, err
}

// created returns a grant with n leases that were created.
func (l *Leases) created(ctx context.Context, p *contender, n int, paths []string, results []zk.MultiResponse, touched bool) (*Grant, error) {
	st := &Grant{s: p.s, lease: p.takeLease(paths[0]), paths: paths}
	for _, path := range paths {
		st.guards = append(st.guards, newGuard(p.s, path, nil))
	}
	var err error
	if touched && results != nil {
		st.token = results[len(results)-1].Stat.Mzxid
	} else {
		var ok bool
		var stat *zk.Stat
		if ok, stat, err = p.s.Exists(ctx, paths[0]); ok {
			st.token = stat.Czxid
		} else if err == nil {
			err = session.ErrRemoved
		}
	}
	if err == nil && len(paths) < n {
		err = session.ErrRemoved
	}
	if err != nil {
		st.leave()
		return nil, err
	}
	return st, nil
}
