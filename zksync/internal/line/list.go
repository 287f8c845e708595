package line

import (
	"cmp"
	"context"
	"slices"

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
