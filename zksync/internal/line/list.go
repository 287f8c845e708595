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
// order.
func (r Rule) List(ctx context.Context, s *session.Session, dir string, n int) ([]Listed, error) {
	for round := 0; ; round++ {
		if err := s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		names, _, err := s.Children(ctx, dir)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil, nil
		}
		if err != nil {
			return nil, err
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
			return nil, err
		}
		if len(found) < len(line) {
			// A contender has left since the listing, so the contenders behind it may hold now.
			continue
		}
		all := make([]Listed, len(found))
		var ahead [Unit]bool // the classes of the contenders ahead
		for i, z := range found {
			all[i] = Listed{Dir: dir, Node: z, Class: line[i].class, Holds: true}
			for theirs, present := range ahead {
				if present && Class(theirs).blocks(line[i].class) {
					all[i].Holds = false
				}
			}
			ahead[line[i].class] = true
		}
		return all, nil
	}
}

// Contenders returns the contenders in line, in order.
func (l *Line) Contenders(ctx context.Context, s *session.Session) ([]Listed, error) {
	return l.List(ctx, s, -1)
}

// ListSemaphore returns the units of the semaphore at path that are held, in the order of
// acquisition, and then its line.
func (n Names) ListSemaphore(ctx context.Context, s *session.Session, path string) ([]Listed, error) {
	return znode.ListWhole(ctx, s, func() ([]Listed, bool, error) { return n.listSemaphoreOnce(ctx, s, path) })
}

// listSemaphoreOnce is ListSemaphore, and reports whether no unit was released since the
// listing.
func (n Names) listSemaphoreOnce(ctx context.Context, s *session.Session, path string) (all []Listed, whole bool, err error) {
	line, l := n.semaphore(path, 0)
	// The line before the units: a contender that is exchanged for units between the two
	// listings is in both. In the other order it would be in none.
	waiting, err := LockRule.List(ctx, s, line.Path, -1)
	if err != nil {
		return nil, false, err
	}
	for i := range waiting {
		waiting[i].Holds = false // the first contender in line waits for units
	}
	names, _, err := s.Children(ctx, l.dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		return waiting, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !l.isUnit(name) })
	found, err := znode.ReadAll(ctx, s, l.dir.Path, names)
	// Units have GUIDs in place of numbers. Their czxids have the order of acquisition.
	slices.SortFunc(found, func(a, b znode.Node) int {
		return cmp.Or(cmp.Compare(a.Stat.Czxid, b.Stat.Czxid), cmp.Compare(a.Name, b.Name))
	})
	for _, z := range found {
		all = append(all, Listed{Dir: l.dir.Path, Node: z, Class: Unit, Holds: true})
	}
	return append(all, waiting...), len(found) == len(names), err
}

// List returns the first n contenders in order, or all if n is negative.
func (l *Line) List(ctx context.Context, s *session.Session, n int) ([]Listed, error) {
	return l.Rule.List(ctx, s, l.Dir.Path, n)
}

// follow reports the znode of the first contender; see Contest.
func (l *Line) follow(ctx context.Context, s *session.Session, report func(data []byte, stat *zk.Stat)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, l.Dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, l.Dir.Path)
		return reportNone(w, err, ok, report)
	}
	if err != nil {
		return nil, err
	}
	all := l.Rule.sort(names)
	if len(all) == 0 {
		// Only an empty line needs a watch on its directory, so the first listing set
		// none.
		names, _, w, err := s.WatchChildren(ctx, l.Dir.Path)
		return reportNone(w, err, len(l.Rule.sort(names)) > 0, report)
	}
	// Only the departure of the first contender changes the leader. Contenders that join or
	// leave behind it wake no observer.
	// Sequence numbers grow, so no candidate has joined ahead of this one since the listing.
	data, stat, w, err := s.WatchData(ctx, znode.Join(l.Dir.Path, all[0].name))
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	report(data, stat)
	return w, nil
}

// reportNone reports that no candidate leads, unless a candidate has joined meanwhile.
func reportNone(w *session.Watch, err error, come bool, report func(data []byte, stat *zk.Stat)) (*session.Watch, error) {
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return nil, nil
	case err != nil:
		return nil, err
	case come:
		w.Stop()
		return nil, nil
	}
	report(nil, nil)
	return w, nil
}
