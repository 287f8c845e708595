package zksync

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxListings is how many partitions are listed at once.
const maxListings = 32

// watchDir lists a directory of the queue, which it makes where there is none.
func (v *queueView) watchDir(ctx context.Context, dir string) ([]string, *zk.Stat, *staleFlag, error) {
	for round := 0; ; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return nil, nil, nil, err
		}
		names, stat, w, err := v.s.WatchChildren(ctx, dir)
		if err == nil {
			return names, stat, newStaleFlag(w, &v.broadcast), nil
		}
		if session.ClassOf(err) != session.ClassNoNode {
			return nil, nil, nil, err
		}
		if err := v.c.q.makeDir(ctx, v.s, dir); err != nil {
			return nil, nil, nil, err
		}
	}
}

// listPartitions finds out which partitions there are.
func (v *queueView) listPartitions(ctx context.Context) error {
	names, _, f, err := v.watchDir(ctx, v.c.q.path)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partitionListing.stopWatch()
	v.partitionListing = f
	known := make(map[string]*partition, len(v.partitions))
	for _, p := range v.partitions {
		known[p.name] = p
	}
	v.partitions = nil
	for _, name := range names {
		if key, ok := v.c.q.kind.parsePartition(name); ok {
			p := known[name]
			if p == nil {
				p = &partition{name: name, key: key, firstListed: time.Now().UnixMilli()}
			}
			v.partitions = append(v.partitions, p)
		}
	}
	slices.SortFunc(v.partitions, func(a, b *partition) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return nil
}

// listMessages finds out which messages there are in a partition.
func (v *queueView) listMessages(ctx context.Context, p *partition) error {
	var names []string
	var stat *zk.Stat
	var f *staleFlag
	var err error
	if p.name == "" {
		names, stat, f, err = v.watchDir(ctx, v.c.q.path)
	} else {
		var w *session.Watch
		names, stat, w, err = v.s.WatchChildren(ctx, v.dir(p))
		switch {
		case err == nil:
			f = newStaleFlag(w, &v.broadcast)
		case session.ClassOf(err) == session.ClassNoNode:
			return v.dropPartition(p)
		}
	}
	if err != nil {
		return err
	}
	if p, err = v.trackPartition(ctx, p, stat.Czxid); err != nil {
		f.stopWatch()
		return err
	}
	undeletable := false
	if v.c.q.kind.delayed && p.expiry() <= time.Now().UnixMilli() {
		// A late Put into this directory creates the directory again.
		if undeletable = len(names) > 0; !undeletable {
			err = v.s.Delete(ctx, v.dir(p), -1)
		}
		switch {
		case undeletable:
		case err == nil || session.ClassOf(err) == session.ClassNoNode:
			f.stopWatch()
			return v.dropPartition(p)
		case ctx.Err() != nil || session.ClassOf(err).Again():
			f.stopWatch()
			return err
		default:
			undeletable = true
		}
	}
	found := itemsOf(names, v.c.q.kind.parse)
	if p.name == "" {
		v.c.q.observeLength(len(found)) // before the taken messages are left out
	}
	v.c.pending.forgetUnlisted(p, found)
	v.mu.Lock()
	defer v.mu.Unlock()
	found = slices.DeleteFunc(found, func(it queueItem) bool {
		r := messageRef{p, it}
		if _, absent := v.absent[r]; absent {
			v.absent[r] = true
		}
		_, taken := v.picked[r]
		_, others := v.claimedByOthers[r]
		return taken || others
	})
	p.waiting.replace(p.withoutSkipped(found))
	p.listing.stopWatch()
	p.listing, p.undeletable = f, undeletable
	return nil
}

// dropPartition forgets a partition that is not there any more, which the watch on the
// directory above will tell, too.
func (v *queueView) dropPartition(p *partition) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partitions = slices.DeleteFunc(v.partitions, func(x *partition) bool { return x == p })
	v.retirePartition(p)
	return nil
}

// retirePartition ends a partition that is not there any more, or whose place another partition of the same
// name has taken; o.mu is held.
func (v *queueView) retirePartition(p *partition) {
	p.recreated.Store(true)
	if p.dirWatch != nil {
		p.dirWatch.Stop()
	}
	maps.DeleteFunc(v.claimedByOthers, func(r messageRef, _ struct{}) bool { return r.partition == p })
}

// trackPartition returns the partition that has the czxid: l itself, or another one in its place if
// the directory was deleted and created again. Its messages may have the names of
// messages that we have had.
func (v *queueView) trackPartition(ctx context.Context, p *partition, czxid int64) (*partition, error) {
	v.mu.Lock()
	if p.czxid != 0 && p.czxid != czxid {
		now := &partition{name: p.name, key: p.key, firstListed: time.Now().UnixMilli()}
		if i := slices.Index(v.partitions, p); i >= 0 {
			v.partitions[i] = now
		}
		p.listing.stopWatch()
		v.retirePartition(p)
		p = now
	}
	p.czxid = czxid
	v.mu.Unlock()
	if k := v.c.q.kind; k.parsePartition == nil && !k.claimsBeside {
		p.tracked.Store(true) // claims go with a directory that they are in
	}
	if p.tracked.Load() {
		return p, nil
	}
	there, stat, w, err := v.s.WatchExists(ctx, v.dir(p))
	if err != nil {
		return p, err
	}
	if !there || stat.Czxid != czxid {
		w.Stop()
		p.recreated.Store(true)
		return p, nil
	}
	p.tracked.Store(true)
	w.Notify(func(e zk.Event) {
		p.tracked.Store(false)
		if e.Type == zk.EventNodeDeleted {
			p.recreated.Store(true)
		}
	})
	v.mu.Lock()
	p.dirWatch = w
	v.mu.Unlock()
	return p, nil
}

// listClaims finds out which messages others have claimed.
func (v *queueView) listClaims(ctx context.Context) error {
	names, _, w, err := v.s.WatchChildren(ctx, v.c.q.child(claimsName))
	if err != nil && session.ClassOf(err) != session.ClassNoNode {
		return err
	}
	var f *staleFlag
	if err == nil {
		f = newStaleFlag(w, &v.broadcast)
	}
	claimed := make(map[string]struct{}, len(names))
	for _, name := range names {
		claimed[name] = struct{}{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claimListing.stopWatch()
	v.claimListing = f
	for r := range v.claimedByOthers {
		if _, ok := claimed[r.claimName()]; !ok {
			delete(v.claimedByOthers, r)
			r.partition.waiting.insert(r.queueItem)
		}
	}
	v.claimNames = claimed
	return nil
}

// countPeers finds out how many consumers there are.
func (v *queueView) countPeers(ctx context.Context) error {
	names, _, f, err := v.watchDir(ctx, v.c.q.child(consumersName))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.peers, v.consumerListing = max(1, len(names)), f
	return nil
}
