package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// The leases of a semaphore are the znodes of its held units, one for each unit. The
// holder of the semaphore's lock creates leases, in the transaction that releases
// the lock: so its count of the leases is still true then, as far as the other clients have
// the lock, too. See crowded for the clients that do not.
type leases struct {
	dir    *znode.Directory
	isUnit func(name string) bool // recognises the name of a lease
	size   *unitSize
}

const leaseName = "lease-"

// errCrowded says that another client has created leases without the lock, and that ours are gone.
var errCrowded = errors.New("zksync: another client has taken units out of turn")

// LeaseRule is the rule of the leases that Curator or we have created.
var LeaseRule = Rule{marks: []mark{{"-" + leaseName, Unit}}}

// semaphore returns the directories of a semaphore's line and of its leases. kazoo has
// both beside each other, takes every child of the latter for a lease, and keeps the size
// there as data.
func (n Names) semaphore(path string, size int) (lock *znode.Directory, units leases) {
	if n == Kazoo {
		dir := n.Directory(path)
		dir.Data = fmt.Append(nil, size)
		return n.Directory(path + "-" + n.Lock), leases{dir: dir, isUnit: func(string) bool { return true }}
	}
	return n.Directory(znode.Join(path, "locks")), leases{dir: n.Directory(znode.Join(path, "leases")), isUnit: LeaseRule.Has}
}

// take waits until n units are free and exchanges the contender c, which holds the lock,
// for n leases. If patient is false, it returns nil when the units are not free. It fails with
// errCrowded if the caller has to take the lock again. held is the context of the lock, which also
// ends when this exchange deletes the contender.
func (l *leases) take(ctx, held context.Context, c *contender, n int, patient bool) (*Grant, error) {
	var z sizeRead
	defer func() { z.watch.Stop() }()
	var wait *session.Wait
	defer func() { wait.Stop() }()
	var units, size atomic.Int64 // as counted last
	known := false               // whether z is the present size
	for round := 0; ; {
		var taken int
		var w *session.Watch // on the leases
		var free, touch bool
		if err := l.ask(held, c.s, patient, func() (err error) {
			if !known {
				z.watch.Stop()
				if z, err = l.size.read(held, c.s, patient); err != nil {
					return err
				}
			}
			known = true
			// The count is good until the transaction: only the holder of the lock creates
			// leases, and the transaction deletes the lock's znode, which proves the lock.
			if taken, w, err = l.count(held, c.s, patient); err != nil {
				return err
			}
			// An operator may have lowered the size below the number of units that are held. Then the
			// difference is negative, and the request waits.
			if free = n <= z.n-taken; free {
				w.Stop()
				touch, err = l.dir.Writable(held, c.s)
			}
			return err
		}); err != nil {
			return nil, err
		}
		if err := tooMany(n, z.n); err != nil {
			w.Stop()
			return nil, err
		}
		if free {
			// With ctx, because held may end during the exchange: the guard of the lock takes the
			// deletion of the contender for a removal.
			g, err := l.create(ctx, c, n, z, touch, patient)
			if err == errExhausted {
				// Without new leases the directory becomes empty, at the latest when all units
				// have been released. The lock keeps the other contenders waiting until then.
				if err = l.dir.MarkExhausted(held, c.s); err != nil {
					return nil, err
				}
				if again, err := l.dir.Recreate(held, c.s, patient, l.isUnit); !again || err != nil {
					return nil, err
				}
			} else if g != nil || err != nil {
				return g, err
			}
			if err := c.s.Pause(held, round); err != nil {
				return nil, err
			}
			// The size may have changed between its read and the transaction.
			round++
			known = false
			continue
		}
		if !patient {
			return nil, nil
		}
		units.Store(int64(taken))
		size.Store(int64(z.n))
		if wait == nil {
			wait = c.line.Manager.StartWait("acquire", l.dir.Path, func(context.Context) error {
				return fmt.Errorf("as the next in line, for %d of the semaphore's units: others hold %d of %d", n, units.Load(), size.Load())
			})
		}
		// The first in line alone watches the leases, so a release wakes no herd.
		select {
		case <-w.Events():
		case <-z.watch.Events():
			known = false
			w.Stop()
		case <-held.Done():
			w.Stop()
			return nil, wait.Cancelled(held)
		}
	}
}

// ask calls read. The reads of a request that has waited in line must not fail by an internal
// error of a server.
func (l *leases) ask(ctx context.Context, s *session.Session, patient bool, read func() error) error {
	if !patient {
		return read()
	}
	return znode.ReadPatiently(ctx, s, "acquire", l.dir.Path, read)
}

// count returns the number of units that are held, and creates the directory if there is
// none.
func (l *leases) count(ctx context.Context, s *session.Session, watched bool) (held int, w *session.Watch, err error) {
	for round := 0; ; round++ {
		var names []string
		if watched {
			names, _, w, err = s.WatchChildren(ctx, l.dir.Path)
		} else {
			names, _, err = s.Children(ctx, l.dir.Path)
		}
		if session.ClassOf(err) != session.ClassNoNode {
			for _, name := range names {
				if l.isUnit(name) {
					held++
				}
			}
			return held, w, err
		}
		if err := l.dir.Create(ctx, s); err != nil {
			return 0, nil, err
		}
		// Another client may delete the directory again before it is listed.
		if err := s.Pause(ctx, round); err != nil {
			return 0, nil, err
		}
	}
}

// create creates n leases and deletes the contender in one transaction. It returns nil
// if a znode has changed, so that the caller should read again. touch is as in creation.
func (l *leases) create(ctx context.Context, c *contender, n int, z sizeRead, touch, patient bool) (*Grant, error) {
	cr := creation{dir: l.dir, name: leaseName, data: c.line.Data, n: n, touch: touch}
	cr.first = []any{&zk.DeleteRequest{Path: c.path, Version: -1}}
	if z.version >= 0 {
		// The transaction fails if the size has changed since the count was compared with it.
		cr.first = append(cr.first, &zk.CheckVersionRequest{Path: l.size.path, Version: z.version})
	}
	// A lost answer leaves the contender in doubt. Then its goroutine must not hand it to
	// another goroutine, which would believe that it holds the lock.
	c.state = inDoubt
	paths, dir, failed, err := cr.send(ctx, c.s)
	switch {
	case err == nil:
		return l.created(ctx, c, n, paths, dir, z.n, patient)
	case failed == 0 && session.ClassOf(err) == session.ClassNoNode:
		return nil, c.removed()
	case failed >= 0:
		c.state = granted // the transaction was not carried out
	}
	if err == errAgain || failed > 0 && failed < len(cr.first) {
		return nil, nil
	}
	return nil, err
}

// created returns a grant with n leases that were created. dir is the Stat of the
// directory after the transaction, nil if that is not known, and size the number of units.
func (l *leases) created(ctx context.Context, c *contender, n int, paths []string, dir *zk.Stat, size int, patient bool) (*Grant, error) {
	g := c.exchange(0, paths)
	crowded := false
	err := l.ask(ctx, c.s, patient, func() (err error) {
		if dir != nil {
			// The transaction has changed the directory last, so its zxid is the czxid of the leases.
			g.token = dir.Mzxid
		} else {
			ok, stat, err := c.s.Exists(ctx, paths[0])
			if err == nil && !ok {
				err = session.ErrRemoved
			}
			if err != nil {
				return err
			}
			g.token = stat.Czxid
		}
		if len(paths) < n {
			return session.ErrRemoved // after a lost answer, some of the leases did not exist any more
		}
		crowded, err = l.crowded(ctx, c.s, paths, dir, size)
		return err
	})
	switch {
	case err != nil:
		g.discard() // a part of the units is of no use, and would be held for ever
		return nil, err
	case crowded:
		// The other client waits until they are gone, and a TryAcquire leaves no znode.
		if err := znode.AwaitRemoval(ctx, g.discard()...); err != nil {
			return nil, err
		}
		return nil, errCrowded
	}
	return g, nil
}

// crowded reports whether there were more leases than units when the leases at paths, which are ours, had been created. A
// Curator client whose session ends while it has the lock creates its lease under the next session, without the lock. It
// counts the leases afterwards, and waits while there are too many. We count after ours, too, and leave out the later
// leases: their clients count ours. For example, the next Curator client in line creates its lease before it counts.
// dir is the Stat of the directory after our transaction, nil if it is not known. A kazoo client takes the lock again
// under its next session.
func (l *leases) crowded(ctx context.Context, s *session.Session, paths []string, dir *zk.Stat, size int) (bool, error) {
	if l.dir.Data != nil || dir != nil && int(dir.NumChildren) <= size {
		return false, nil
	}
	names, _, err := znode.Children(ctx, s, l.dir.Path)
	if err != nil {
		return false, err
	}
	_, own, _ := LeaseRule.Parse(znode.Base(paths[0]))
	held := len(paths)
	for _, name := range names {
		// One transaction has created our leases, so no number of another client is between theirs.
		if _, seq, ok := LeaseRule.Parse(name); ok && znode.Earlier(seq, own) && !slices.Contains(paths, znode.Join(l.dir.Path, name)) {
			held++
		}
	}
	return held > size, nil
}
