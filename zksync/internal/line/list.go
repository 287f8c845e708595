package line

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Listed is a contender as a listing shows it.
type Listed struct {
	Dir string
	znode.Node
	Class Class
	Holds bool // no contender ahead blocks it
}

// List returns the first n contenders in the line at dir, or all if n is negative, in
// order. If contenders leave during each of a few attempts, as in a line whose holds are
// shorter than a round trip, it returns the contenders that the last attempt has read.
func (r Rule) List(ctx context.Context, s *session.Session, dir string, n int) ([]Listed, error) {
	for round := 0; ; round++ {
		all, _, whole, err := r.listOnce(ctx, s, dir, n)
		// If all of the first n contenders have left, contenders behind them are in line.
		if err != nil || whole || round >= znode.MaxListings-1 && (len(all) > 0 || n < 0) {
			return all, err
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, err
		}
	}
}

// listOnce is one attempt of List. It returns the zxid of the last change of the line that
// the listing shows, 0 if there is no line, and reports whether no contender has left
// since the listing.
func (r Rule) listOnce(ctx context.Context, s *session.Session, dir string, n int) (all []Listed, zxid int64, whole bool, err error) {
	names, stat, err := znode.Children(ctx, s, dir)
	if err != nil {
		return nil, 0, false, err
	}
	line := r.sort(names)
	if n >= 0 && len(line) > n {
		line = line[:n]
	}
	names = names[:0]
	for _, m := range line {
		names = append(names, m.name)
	}
	found, err := znode.ReadAll(ctx, s, dir, names)
	if err != nil {
		return nil, 0, false, err
	}
	all = make([]Listed, len(found))
	var ahead [Unit]bool // the classes of the contenders ahead
	for i, z := range found {
		// Found, and therefore among the names that Parse knows.
		class, _, _ := r.Parse(z.Name)
		all[i] = Listed{Dir: dir, Node: z, Class: class, Holds: true}
		for theirs, present := range ahead {
			if present && Class(theirs).blocks(class) {
				all[i].Holds = false
			}
		}
		ahead[class] = true
	}
	// A contender that has left since the listing blocks none of the others any more, but the
	// contenders found may never have been the whole line.
	return all, stat.Pzxid, len(found) == len(line), nil
}

// ListSemaphore returns the units of the semaphore at path that are held, in the order of
// acquisition, and then its line.
func (n Names) ListSemaphore(ctx context.Context, s *session.Session, path string) ([]Listed, error) {
	return znode.ListWhole(ctx, s, func() ([]Listed, bool, error) { return n.listSemaphoreOnce(ctx, s, path) })
}

// listSemaphoreOnce is one attempt of ListSemaphore, and reports whether no contender has left
// and no unit was released since the listings.
func (n Names) listSemaphoreOnce(ctx context.Context, s *session.Session, path string) (all []Listed, whole bool, err error) {
	line, l := n.semaphore(path, 0)
	// The line before the units: a contender that is exchanged for units between the two
	// listings is in both. In the other order it would be in none.
	waiting, listed, whole, err := LockRule.listOnce(ctx, s, line.Path, -1)
	if err != nil {
		return nil, false, err
	}
	for i := range waiting {
		waiting[i].Holds = false // the first contender in line waits for units
	}
	names, _, err := znode.Children(ctx, s, l.dir.Path)
	if err != nil {
		return nil, false, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !l.isUnit(name) })
	found, err := znode.ReadAll(ctx, s, l.dir.Path, names)
	// Units have GUIDs in place of numbers. Their czxids have the order of acquisition.
	slices.SortFunc(found, func(a, b znode.Node) int {
		return cmp.Or(cmp.Compare(a.Stat.Czxid, b.Stat.Czxid), cmp.Compare(a.Name, b.Name))
	})
	exchanged := listed
	for _, z := range found {
		all = append(all, Listed{Dir: l.dir.Path, Node: z, Class: Unit, Holds: true})
		// One transaction creates all units of a contender, and deletes the contender. It is the
		// first of its session: the contenders ahead have left.
		if z.Stat.Czxid > exchanged {
			exchanged = z.Stat.Czxid
			if i := slices.IndexFunc(waiting, func(c Listed) bool { return c.Stat.EphemeralOwner == z.Stat.EphemeralOwner }); i >= 0 {
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
	}
	return append(all, waiting...), whole && len(found) == len(names), err
}

// List returns the first n contenders in order, or all if n is negative.
func (l *Line) List(ctx context.Context, s *session.Session, n int) ([]Listed, error) {
	return l.Rule.List(ctx, s, l.Dir.Path, n)
}

// follow returns the znode of the first contender; see Contest.
func (l *Line) follow(ctx context.Context, s *session.Session) ([]byte, *zk.Stat, *session.Watch, error) {
	names, _, err := s.Children(ctx, l.Dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, l.Dir.Path)
		return noLeader(w, err, ok)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	all := l.Rule.sort(names)
	if len(all) == 0 {
		// Only an empty line needs a watch on its directory, so the first listing set
		// none.
		names, _, w, err := s.WatchChildren(ctx, l.Dir.Path)
		return noLeader(w, err, len(l.Rule.sort(names)) > 0)
	}
	// Only the departure of the first contender changes the leader. Contenders that join or
	// leave behind it wake no observer.
	// Sequence numbers grow, so no candidate has joined ahead of this one since the listing.
	return znode.WatchData(ctx, s, znode.Join(l.Dir.Path, all[0].name))
}

// noLeader is the result of follow without a leader, unless a candidate has joined meanwhile.
func noLeader(w *session.Watch, err error, joined bool) ([]byte, *zk.Stat, *session.Watch, error) {
	if joined {
		w.Stop()
		w = nil
	}
	return nil, nil, w, err
}
