package zksync

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxLaneListings is how many lanes are listed at once.
const maxLaneListings = 32

// watchDir lists a directory of the queue, which it makes where there is none.
func (o *outlook) watchDir(ctx context.Context, dir string) ([]string, *zk.Stat, *tripwire, error) {
	for round := 0; ; round++ {
		if err := o.s.Pause(ctx, round-1); err != nil {
			return nil, nil, nil, err
		}
		names, stat, w, err := o.s.WatchChildren(ctx, dir)
		if err == nil {
			return names, stat, lay(w, &o.bell), nil
		}
		if session.ClassOf(err) != session.ClassNoNode {
			return nil, nil, nil, err
		}
		if err := o.c.q.makeDir(ctx, o.s, dir); err != nil {
			return nil, nil, nil, err
		}
	}
}

// listLanes finds out which lanes there are.
func (o *outlook) listLanes(ctx context.Context) error {
	names, _, t, err := o.watchDir(ctx, o.c.q.path)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listing.remove()
	o.listing = t
	known := make(map[string]*lane, len(o.lanes))
	for _, l := range o.lanes {
		known[l.name] = l
	}
	o.lanes = nil
	for _, name := range names {
		if key, ok := o.c.q.kind.lane(name); ok {
			l := known[name]
			if l == nil {
				l = &lane{name: name, key: key, since: time.Now().UnixMilli()}
			}
			o.lanes = append(o.lanes, l)
		}
	}
	slices.SortFunc(o.lanes, func(a, b *lane) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return nil
}

// list finds out which messages there are in a lane.
func (o *outlook) list(ctx context.Context, l *lane) error {
	var names []string
	var stat *zk.Stat
	var t *tripwire
	var err error
	if l.name == "" {
		names, stat, t, err = o.watchDir(ctx, o.c.q.path)
	} else {
		var w *session.Watch
		names, stat, w, err = o.s.WatchChildren(ctx, o.dir(l))
		switch {
		case err == nil:
			t = lay(w, &o.bell)
		case session.ClassOf(err) == session.ClassNoNode:
			return o.drop(l)
		}
	}
	if err != nil {
		return err
	}
	if l, err = o.follow(ctx, l, stat.Czxid); err != nil {
		t.remove()
		return err
	}
	kept := false
	if o.c.q.kind.delayed && l.over() <= time.Now().UnixMilli() {
		// A late Put into this directory creates the directory again.
		if kept = len(names) > 0; !kept {
			err = o.s.Delete(ctx, o.dir(l), -1)
		}
		switch {
		case kept:
		case err == nil || session.ClassOf(err) == session.ClassNoNode:
			t.remove()
			return o.drop(l)
		case ctx.Err() != nil || session.ClassOf(err).Again():
			t.remove()
			return err
		default:
			kept = true
		}
	}
	found := itemsOf(names, o.c.q.kind.parse)
	if l.name == "" {
		o.c.q.observeLength(len(found)) // before the taken messages are left out
	}
	o.c.owed.keep(l, found)
	o.mu.Lock()
	defer o.mu.Unlock()
	found = slices.DeleteFunc(found, func(it item) bool {
		r := ref{l, it}
		if _, absent := o.absent[r]; absent {
			o.absent[r] = true
		}
		_, taken := o.taken[r]
		_, passed := o.passed[r]
		return taken || passed
	})
	l.waiting.replace(l.leftToSkip(found))
	l.listing.remove()
	l.listing, l.kept = t, kept
	return nil
}

// drop forgets a lane that is not there any more, which the watch on the
// directory above will tell, too.
func (o *outlook) drop(l *lane) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lanes = slices.DeleteFunc(o.lanes, func(x *lane) bool { return x == l })
	o.forget(l)
	return nil
}

// forget ends a lane that is not there any more, or whose place another lane of the same
// name has taken; o.mu is held.
func (o *outlook) forget(l *lane) {
	l.remade.Store(true)
	if l.life != nil {
		l.life.Stop()
	}
	maps.DeleteFunc(o.passed, func(r ref, _ struct{}) bool { return r.lane == l })
}

// follow returns the lane that has the czxid: l itself, or another one in its place if
// the directory was deleted and created again. Its messages may have the names of
// messages that we have had.
func (o *outlook) follow(ctx context.Context, l *lane, czxid int64) (*lane, error) {
	o.mu.Lock()
	if l.czxid != 0 && l.czxid != czxid {
		now := &lane{name: l.name, key: l.key, since: time.Now().UnixMilli()}
		if i := slices.Index(o.lanes, l); i >= 0 {
			o.lanes[i] = now
		}
		l.listing.remove()
		o.forget(l)
		l = now
	}
	l.czxid = czxid
	o.mu.Unlock()
	if k := o.c.q.kind; k.lane == nil && !k.beside {
		l.guarded.Store(true) // claims go with a directory that they are in
	}
	if l.guarded.Load() {
		return l, nil
	}
	there, stat, w, err := o.s.WatchExists(ctx, o.dir(l))
	if err != nil {
		return l, err
	}
	if !there || stat.Czxid != czxid {
		w.Stop()
		l.remade.Store(true)
		return l, nil
	}
	l.guarded.Store(true)
	w.Notify(func(e zk.Event) {
		l.guarded.Store(false)
		if e.Type == zk.EventNodeDeleted {
			l.remade.Store(true)
		}
	})
	o.mu.Lock()
	l.life = w
	o.mu.Unlock()
	return l, nil
}

// listClaims finds out which messages others have claimed.
func (o *outlook) listClaims(ctx context.Context) error {
	names, _, w, err := o.s.WatchChildren(ctx, o.c.q.child(claimsName))
	if err != nil && session.ClassOf(err) != session.ClassNoNode {
		return err
	}
	var t *tripwire
	if err == nil {
		t = lay(w, &o.bell)
	}
	claimed := make(map[string]struct{}, len(names))
	for _, name := range names {
		claimed[name] = struct{}{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims.remove()
	o.claims = t
	for r := range o.passed {
		if _, ok := claimed[r.claimName()]; !ok {
			delete(o.passed, r)
			r.lane.waiting.put(r.item)
		}
	}
	o.claimed = claimed
	return nil
}

// count finds out how many consumers there are.
func (o *outlook) count(ctx context.Context) error {
	names, _, t, err := o.watchDir(ctx, o.c.q.child(consumersName))
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers, o.census = max(1, len(names)), t
	return nil
}
