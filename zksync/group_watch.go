package zksync

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Watch reports the members, sorted by id, and then again after each change: when
// a member joins or leaves, or changes its data. A member whose connection breaks
// stays in the list until its session ends. A list that was not received is
// replaced by the newest. The lists belong to the receiver.
//
// Lost connections and sessions of the watching process only delay the stream. The
// stream ends with ctx, when the Manager is closed, and when the path is invalid or
// may not be read; its Err is a *watch.EndError with the reason.
func (g *Group) Watch(ctx context.Context) *watch.Stream[[]Member] {
	return watch.NewStream(ctx, "group", g.path, func(ctx context.Context, report func([]Member, any)) error {
		if g.err != nil {
			return g.err
		}
		return g.follow(ctx, report)
	})
}

// follow reports the members until ctx or the mirror of the group ends.
func (g *Group) follow(ctx context.Context, report func([]Member, any)) error {
	ctx, cancel := context.WithCancel(ctx)
	tree := watch.Tree(ctx, g.m, g.path)
	defer func() {
		cancel()
		for range tree.Events() { // until nothing of the mirror is left
		}
	}()
	if err := tree.WaitSynced(ctx); err != nil {
		return err
	}
	known := make(map[string]Member)
	names, _ := tree.Children(g.path)
	for _, id := range names {
		g.note(known, tree, id)
	}
	report(sorted(known), nil)
	for ev := range tree.Events() {
		changed := g.note(known, tree, znode.Base(ev.Path))
		for more := true; more; {
			// Changes that arrive together are reported together.
			select {
			case ev, more = <-tree.Events():
				changed = more && g.note(known, tree, znode.Base(ev.Path)) || changed
			default:
				more = false
			}
		}
		if changed {
			report(sorted(known), nil)
		}
	}
	return tree.Err()
}

// note updates the known state of one member, and reports whether the state has
// changed. The group's own directory is no member.
func (g *Group) note(known map[string]Member, tree *watch.Cache, id string) bool {
	before, was := known[id]
	st, is := tree.Get(znode.Join(g.path, id))
	if !is {
		delete(known, id)
		return was
	}
	known[id] = memberOf(id, st.Data, &st.Stat)
	return !was || before.Token != known[id].Token || before.changed != known[id].changed
}

func sorted(known map[string]Member) []Member {
	all := make([]Member, 0, len(known))
	for _, m := range known {
		m.Data = slices.Clone(m.Data)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return all
}
