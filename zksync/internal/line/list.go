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
			continue // a contender has left since the listing
		}
		all := make([]Listed, len(found))
		var ahead [Unit]bool // the classes of the contenders ahead
		for i, z := range found {
			all[i] = Listed{Dir: dir, Node: z, Class: line[i].class, Holds: true}
			for theirs, present := range ahead {
				if present && r.blocks(Class(theirs), line[i].class) {
					all[i].Holds = false
				}
			}
			ahead[line[i].class] = true
		}
		return all, nil
	}
}

// Contenders returns the contenders in line, in order, as of the time of the call.
func (l *Line) Contenders(ctx context.Context) ([]Listed, error) {
	return znode.ReadCommitted(ctx, l.Manager, l.Dir.Path, func(ctx context.Context, s *session.Session) ([]Listed, error) {
		return l.List(ctx, s, -1)
	})
}

// List returns the units that are held, in the order of acquisition, and the line of
// the semaphore, which is at dir.
func (l Leases) List(ctx context.Context, s *session.Session, dir string) ([]Listed, error) {
	waiting, err := LockRule.List(ctx, s, dir, -1)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		waiting[i].Holds = false // the first contender in line waits for units
	}
	names, _, err := s.Children(ctx, l.Dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		return waiting, nil
	}
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !l.IsUnit(name) })
	found, err := znode.ReadAll(ctx, s, l.Dir.Path, names)
	slices.SortFunc(found, func(a, b znode.Node) int {
		return cmp.Or(cmp.Compare(a.Stat.Czxid, b.Stat.Czxid), cmp.Compare(a.Name, b.Name))
	})
	var all []Listed
	for _, z := range found {
		all = append(all, Listed{Dir: l.Dir.Path, Node: z, Class: Unit, Holds: true})
	}
	return append(all, waiting...), err
}

// Hold waits in line until the contender is first.
func (l *Line) Hold(ctx context.Context) (*Hold, error) {
	p, err := l.stand(ctx)
	if err != nil {
		return nil, err
	}
	return &Hold{p: p}, nil
}

// List returns the first n contenders in order, or all if n is negative.
func (l *Line) List(ctx context.Context, s *session.Session, n int) ([]Listed, error) {
	return l.Rule.List(ctx, s, l.Dir.Path, n)
}

// Follow reports the znode of the first contender, or a nil Stat if there is none, and
// returns a watch for the next change. It returns nil if the line has changed during
// the reads.
func (l *Line) Follow(ctx context.Context, s *session.Session, report func(data []byte, stat *zk.Stat)) (*session.Watch, error) {
	names, _, err := s.Children(ctx, l.Dir.Path)
	if session.ClassOf(err) == session.ClassNoNode {
		ok, _, w, err := s.WatchExists(ctx, l.Dir.Path)
		return reportNone(w, err, ok, report)
	}
	if err != nil {
		return nil, err
	}
	places := l.Rule.sort(names)
	if len(places) == 0 {
		names, _, w, err := s.WatchChildren(ctx, l.Dir.Path)
		return reportNone(w, err, len(l.Rule.sort(names)) > 0, report)
	}
	data, stat, w, err := s.WatchData(ctx, znode.Join(l.Dir.Path, places[0].name))
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
