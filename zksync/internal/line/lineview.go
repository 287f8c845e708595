package line

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A lineView has the znode of a contender, and its view of the contenders ahead.
type lineView struct {
	line  *Line
	s     *session.Session
	path  string
	name  string
	seq   int32
	token int64 // its czxid, 0 until known

	// While the contender waits:
	own   *session.Watch // on its own znode
	near  neighbour      // the nearest contender that blocks it
	far   neighbour      // the contender before near that blocks it
	last  bool           // no other contender than near blocks it
	ahead *ahead         // nil until the line was listed
}

// A neighbour is a contender ahead whose znode is watched.
type neighbour struct {
	name  string
	watch *session.Watch // nil if there is no such contender
}

// unbroken reports whether all our knowledge of the line comes from one connection:
// only then would an earlier event have told us of a change of our own znode.
func (v *lineView) unbroken() bool {
	if v.own == nil || v.near.watch.FiredOn() != v.near.watch.Connection() || v.own.Connection() != v.near.watch.Connection() {
		return false
	}
	// The event of our own znode may have arrived without having been received.
	return len(v.own.Events()) == 0
}

// survey lists the line and, at the same time, watches our own znode.
func (v *lineView) survey(ctx context.Context) (front, error) {
	var own error
	var wg sync.WaitGroup
	// Both requests travel together. Only the watch tells of a removal after its read, so
	// unbroken looks at the watch again.
	if v.own == nil {
		wg.Go(func() { own = v.watchOwn(ctx) })
	}
	names, _, err := v.s.ChildNames(ctx, v.line.Dir.Path)
	wg.Wait()
	switch {
	case own != nil:
		return front{}, own
	case session.ClassOf(err) == session.ClassNoNode:
		// A server deletes no directory with a child, so our znode was removed before.
		return front{}, session.ErrRemoved
	case err != nil:
		return front{}, err
	}
	f := v.front(names)
	// Our session created the znode, and reads of one session never go back in time: a list
	// without the znode proves that another client has removed it.
	if !f.listed {
		return front{}, session.ErrRemoved
	}
	if v.ahead == nil {
		v.ahead = &ahead{v: v}
	}
	v.ahead.listed(f)
	return f, nil
}

// watchOwn arms the watch on our own znode.
func (v *lineView) watchOwn(ctx context.Context) error {
	_, stat, w, err := znode.WatchData(ctx, v.s, v.path)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return session.ErrRemoved
	case err != nil:
		return err
	case stat.EphemeralOwner != v.s.ID():
		// Another client has created a znode of the same name. A hold must not rest on it.
		w.Stop()
		return session.ErrRemoved
	}
	v.own, v.token = w, stat.Czxid
	return nil
}

// watchNeighbours watches two contenders, and keeps watches that exist. far may be
// empty.
func (v *lineView) watchNeighbours(ctx context.Context, near, far string) error {
	old := []neighbour{v.near, v.far}
	var now [2]neighbour
	var errs [2]error
	var wg sync.WaitGroup
	for i, name := range []string{near, far} {
		if name == "" {
			continue
		}
		if j := slices.IndexFunc(old, func(n neighbour) bool { return n.name == name }); j >= 0 {
			now[i], old[j] = old[j], neighbour{}
			continue
		}
		// Both requests travel together: a hand-over must not wait for two round trips.
		wg.Go(func() {
			data, stat, w, err := znode.WatchData(ctx, v.s, znode.Join(v.line.Dir.Path, name))
			if err == nil {
				v.ahead.read(name, data, stat)
				now[i] = neighbour{name, w}
			} else if session.ClassOf(err) != session.ClassNoNode {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	// Watches are stopped after the new ones are armed: a contender that is still of
	// interest keeps its watch, and misses no event.
	for _, n := range old {
		n.watch.Stop()
	}
	// If near is gone, v.near is empty and the caller lists the line again.
	v.near, v.far = now[0], now[1]
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if far != "" && v.far.watch == nil {
		// far has left between the list and the watch. Only another list shows the
		// contenders that remain.
		v.forgetNeighbours()
	}
	return nil
}

func (v *lineView) forgetNeighbours() {
	v.near.watch.Stop()
	v.far.watch.Stop()
	v.near, v.far = neighbour{}, neighbour{}
}

// A position is a contender as a listing shows it.
type position struct {
	name  string
	class Class
	seq   int32
}

// compare orders contenders as they are in line.
func (m position) compare(n position) int {
	switch {
	case m.seq == n.seq:
		return strings.Compare(m.name, n.name)
	case znode.Earlier(m.seq, n.seq):
		return -1
	}
	return 1
}

// sort returns the contenders of a listing in the order of the line.
func (r Rule) sort(names []string) []position {
	var all []position
	for _, name := range names {
		if c, seq, ok := r.Parse(name); ok {
			all = append(all, position{name, c, seq})
		}
	}
	slices.SortFunc(all, position.compare)
	return all
}

// A front has the contenders that block a contender, as far as the contender needs to
// know them.
type front struct {
	near, far string // the two nearest; empty if there are none
	last      bool   // no other contender than near
	listed    bool   // the contender itself is in the list

	// For errors and log lines:
	count int    // of contenders that block
	first string // the first of these contenders
	leads bool   // first is the first of the whole line, and so holds
}

// front finds the contenders that block the contender. It does not sort the line, which may be long.
func (v *lineView) front(names iter.Seq[string]) front {
	var f front
	var near, far, first, head position
	for name := range names {
		m := position{name: name}
		var ok bool
		if m.class, m.seq, ok = v.line.Rule.Parse(name); !ok {
			continue
		}
		// head is the first of all, also of the contenders that do not block this one.
		if head.name == "" || m.compare(head) < 0 {
			head = m
		}
		if name == v.name {
			f.listed = true
			continue
		}
		// A number that has wrapped is smaller, and yet later: Earlier compares by
		// distance.
		if !znode.Earlier(m.seq, v.seq) || !m.class.blocks(v.line.Class) {
			continue
		}
		f.count++
		if first.name == "" || m.compare(first) < 0 {
			first = m
		}
		switch {
		case near.name == "" || near.compare(m) < 0:
			near, far = m, near
		case far.name == "" || far.compare(m) < 0:
			far = m
		}
	}
	// The names are parts of an answer, which may be long and would stay in memory.
	f.near, f.far = strings.Clone(near.name), strings.Clone(far.name)
	f.leads = f.count > 0 && first.name == head.name
	f.first = strings.Clone(first.name)
	f.last = near.name != "" && far.name == ""
	return f
}
