package queue

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
)

const (
	// maxListings is the number of requests that list partitions at the same time.
	maxListings = 32

	// nameRest is the rest after a listing for each name in it, of which the listing takes about half a microsecond.
	nameRest = 20 * time.Microsecond
)

// refreshListings refreshes the stale listings that decide which message is the next one. It deletes the directories
// whose time is over, and returns the state of the order znode afterwards.
func (v *view) refreshListings(ctx context.Context, st *orderState) (*orderState, error) {
	l := &v.partitions
	l.mu.Lock()
	stale := v.cfg.Kind.ParsePartition != nil && l.listing.isStale()
	l.mu.Unlock()
	if stale {
		names, _, f, err := v.watchDir(ctx, v.cfg.Path, true)
		if err != nil {
			return nil, err
		}
		l.replace(names, f)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxListings)
	for _, p := range l.stale(st, v.isLong(st)) {
		g.Go(func() error { return v.listMessages(gctx, p, st) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return v.deleteOverdue(ctx, st)
}

// watchDir lists and watches a directory of the queue. If create, it creates a missing directory.
func (v *view) watchDir(ctx context.Context, dir string, create bool) ([]string, *zk.Stat, *staleFlag, error) {
	for round := 0; ; round++ {
		// A server that lags, or a deposed leader, may answer NoNode to the listing and
		// NodeExists to the creation. Without the pause this loop would spin.
		if err := v.s.Pause(ctx, round-1); err != nil {
			return nil, nil, nil, err
		}
		names, stat, w, err := v.s.WatchChildren(ctx, dir)
		if err == nil {
			return names, stat, newStaleFlag(w, &v.changed, time.Now().Add(v.restAfter(dir, len(names)))), nil
		}
		if !create || session.ClassOf(err) != session.ClassNoNode {
			return nil, nil, nil, err
		}
		if err := v.cfg.MakeDir(ctx, v.s, dir); err != nil {
			return nil, nil, nil, err
		}
	}
}

// restAfter returns the time after a listing of a directory with n names in which events do not make it stale. Most
// messages of Retry, and most spans of a DelayQueue, are not due: if each change made a consumer list all of them, the
// cost of a message would grow with the number of messages that wait for their time.
func (v *view) restAfter(dir string, n int) time.Duration {
	if n <= namesPerRead || dir != v.cfg.child(laterName) && (!v.cfg.Kind.Delayed || dir != v.cfg.Path) {
		return 0
	}
	return time.Duration(n) * nameRest
}

// listTracked lists and watches the directory of a partition, with a watch that reports its deletion. The partition that
// it returns is the one of this directory, or nil if there is no directory any more.
func (v *view) listTracked(ctx context.Context, p *partition) (names []string, _ *partition, _ *staleFlag, err error) {
	lasting := p.name == "" || p.name == laterName
	for round := 0; ; round++ {
		// The directory may have been deleted since its listing. A server whose answers
		// contradict each other must not be asked without a pause.
		if err := v.s.Pause(ctx, round-1); err != nil {
			return nil, nil, nil, err
		}
		conn := v.s.Connection()
		names, stat, f, err := v.watchDir(ctx, p.dir, lasting)
		if !lasting && session.ClassOf(err) == session.ClassNoNode {
			v.partitions.drop(p)
			return nil, nil, nil, nil
		}
		if err != nil {
			return nil, nil, nil, err
		}
		p = v.partitions.withCzxid(p, stat.Czxid)
		tracked, err := v.track(ctx, p)
		if tracked && err == nil {
			p.seenOn.Store(conn)
			return names, p, f, nil
		}
		f.stopWatch()
		if err != nil {
			return nil, nil, nil, err
		}
	}
}

// listMessages refreshes the waiting messages of a partition.
func (v *view) listMessages(ctx context.Context, p *partition, st *orderState) error {
	names, p, f, err := v.listTracked(ctx, p)
	if p == nil || err != nil {
		return err
	}
	found := ItemsOf(names, p.parse)
	if p.name == "" {
		v.cfg.observeLength(len(found)) // includes the picked and the claimed messages
	}
	// The messages and the flag of their listing change under one lock: pick relies on
	// all messages of a listing as long as its flag is not stale.
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	p.empty, p.undeletable = len(names) == 0, false
	p.noteGone(found, st.table)
	p.replace(found, f)
	return nil
}

// withCzxid returns the partition whose directory has the czxid: p itself, or a new
// partition in the position of p if the directory was deleted and created again.
func (l *partitionList) withCzxid(p *partition, czxid int64) *partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A new directory counts from zero again, so its messages have the names of earlier
	// messages. The state of the old names must not be applied to the new messages.
	if p.czxid != 0 && p.czxid != czxid {
		now := newPartition(l.cfg, p.name, p.key)
		if i := slices.Index(l.all, p); i >= 0 {
			l.all[i] = now
		}
		l.end(p)
		p = now
	}
	if p.czxid != czxid { // it is set once, because messages of the partition refer to it
		p.czxid = czxid
	}
	return p
}

// track sets a watch that reports the next deletion of a listed directory, if the loss of the ledger does not report it.
// It reports false if the directory was deleted since the listing.
func (v *view) track(ctx context.Context, p *partition) (bool, error) {
	if p.holdsLedgers || p.tracked.Load() {
		return true, nil
	}
	there, stat, w, err := v.s.WatchExists(ctx, p.dir)
	if err != nil {
		return false, err
	}
	if !there || stat.Czxid != p.czxid {
		w.Stop()
		return false, nil
	}
	p.tracked.Store(true)
	w.Notify(func(e zk.Event) {
		// Any event uses the watch up. Until the next listing sets another watch, a
		// deletion would go unnoticed, and mayBeRecreated reports true. If the directory was
		// deleted and created again during a disconnection, the event says that it has changed.
		p.tracked.Store(false)
		if e.Type == zk.EventNodeDeleted {
			p.recreated.Store(true)
		}
	})
	v.partitions.mu.Lock()
	p.dirWatch = w
	v.partitions.mu.Unlock()
	return true, nil
}
