package zksync

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/watch"
)

// Watch tells who is in the group, sorted by id, and then again after each
// change: when somebody joins or leaves, or changes its data. A member whose
// connection breaks stays; one whose session ends has gone. The channel has a
// buffer of one, in which the newest list replaces one that was not read; it is
// closed when ctx ends, when the Manager is closed, and when the path is invalid or
// may not be read. Lost sessions of the watching process only delay it. The lists
// are the receiver's to keep.
func (g *Group) Watch(ctx context.Context) <-chan []Member {
	ch := make(chan []Member, 1)
	if g.err != nil {
		close(ch)
		return ch
	}
	ctx, cancel := context.WithCancel(ctx)
	tree := watch.Tree(ctx, g.m, g.path)
	go func() {
		defer close(ch)
		defer cancel()
		if tree.WaitSynced(ctx) != nil {
			return
		}
		known := make(map[string]Member)
		names, _ := tree.Children(g.path)
		for _, id := range names {
			g.note(known, tree, id)
		}
		ch <- sorted(known)
		for ev := range tree.Events() {
			changed := g.note(known, tree, lastName(ev.Path))
			for more := true; more; {
				// What has happened together is told together.
				select {
				case ev, more = <-tree.Events():
					changed = more && g.note(known, tree, lastName(ev.Path)) || changed
				default:
					more = false
				}
			}
			if !changed {
				continue
			}
			select {
			case <-ch:
			default:
			}
			ch <- sorted(known)
		}
	}()
	return ch
}

// note brings up to date what is known of one member, and reports whether that
// was a change. The group's own directory is no member.
func (g *Group) note(known map[string]Member, tree *watch.Cache, id string) bool {
	before, was := known[id]
	st, is := tree.Get(child(g.path, id))
	if !is {
		delete(known, id)
		return was
	}
	known[id] = Member{
		ID: id, Data: st.Data, Session: st.Stat.EphemeralOwner,
		Token: st.Stat.Czxid, changed: st.Stat.Mzxid,
	}
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
