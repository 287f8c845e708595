package zksync

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxListings is the number of requests that list partitions at the same time.
const maxListings = 32

// watchDir lists and watches a directory of the queue. It creates a missing directory.
func (v *queueView) watchDir(ctx context.Context, dir string) ([]string, *zk.Stat, *staleFlag, error) {
	for round := 0; ; round++ {
		// A server that lags, or a deposed leader, may answer NoNode to the listing and
		// NodeExists to the creation. Without the pause this loop would spin.
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

// listPartitions refreshes the list of partitions.
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
			// A known partition keeps its waiting messages and its watches: an event in
			// one directory must not make the consumer list all directories.
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

// listMessages refreshes the waiting messages of a partition. It deletes the directory
// of a partition whose time is over.
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
		// The server refuses to delete a directory with children, so a message that was
		// put after the listing is not lost. A later Put creates the directory again.
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
			// The directory is not empty after all, or must not be deleted. Without this
			// mark refreshStale would list it at each look.
			undeletable = true
		}
	}
	found := itemsOf(names, v.c.q.kind.parse)
	if p.name == "" {
		v.c.q.observeLength(len(found)) // includes the picked and the claimed messages
	}
	v.c.pending.forgetUnlisted(p, found)
	v.mu.Lock()
	defer v.mu.Unlock()
	found = slices.DeleteFunc(found, func(it queueItem) bool {
		r := messageRef{p, it}
		if _, absent := v.absent[r]; absent {
			// A message of this name exists again. It stays picked until our old claim is
			// deleted, and resolveAbsent requeues it then.
			v.absent[r] = true
		}
		_, picked := v.picked[r]
		_, others := v.claimedByOthers[r]
		return picked || others
	})
	// The messages and the flag of their listing change under one lock: pick relies on
	// all messages of a listing as long as its flag is not stale.
	p.waiting.replace(p.withoutSkipped(found))
	p.listing.stopWatch()
	p.listing, p.undeletable = f, undeletable
	return nil
}

// dropPartition removes a partition whose directory does not exist any more from the
// list of partitions. The watch on the directory above reports the deletion, too.
func (v *queueView) dropPartition(p *partition) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partitions = slices.DeleteFunc(v.partitions, func(x *partition) bool { return x == p })
	v.retirePartition(p)
	return nil
}

// retirePartition ends the use of a partition whose directory was deleted; v.mu is held.
func (v *queueView) retirePartition(p *partition) {
	// Consumers may still hold messages of p. From now on their names may stand for
	// messages of a new directory, so that requeue and Ack must not go by the names.
	p.recreated.Store(true)
	if p.dirWatch != nil {
		p.dirWatch.Stop()
	}
	maps.DeleteFunc(v.claimedByOthers, func(r messageRef, _ struct{}) bool { return r.partition == p })
}

// trackPartition returns the partition whose directory has the czxid: p itself, or a new
// partition in the position of p if the directory was deleted and created again. It sets
// a watch that reports the next deletion, if claims do not report it.
func (v *queueView) trackPartition(ctx context.Context, p *partition, czxid int64) (*partition, error) {
	v.mu.Lock()
	// A new directory counts from zero again, so its messages have the names of earlier
	// messages. The state of the old names, such as picks and skips, must not be applied
	// to the new messages.
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
		// The claims are below the directory and are deleted with it. A removal also
		// deletes the claim, so it fails after that, and removes no message of the same
		// name.
		p.tracked.Store(true)
	}
	if p.tracked.Load() {
		return p, nil
	}
	// Claims outside of the directory survive its deletion. Then only an event tells that
	// a claim does not belong to the message of its name any more.
	there, stat, w, err := v.s.WatchExists(ctx, v.dir(p))
	if err != nil {
		return p, err
	}
	if !there || stat.Czxid != czxid {
		// The directory was deleted between the listing and this watch.
		w.Stop()
		p.recreated.Store(true)
		return p, nil
	}
	p.tracked.Store(true)
	w.Notify(func(e zk.Event) {
		// Any event uses the watch up. Until the next listing sets another watch, a
		// deletion would go unnoticed, and mayBeRecreated reports true.
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

// listClaims refreshes the list of claims. Messages whose claims are gone wait again.
func (v *queueView) listClaims(ctx context.Context) error {
	names, _, w, err := v.s.WatchChildren(ctx, v.c.q.child(claimsName))
	if err != nil && session.ClassOf(err) != session.ClassNoNode {
		return err
	}
	// Without a directory there are no claims and no watch: f stays nil, which is always
	// stale, so that the next look lists the claims again.
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
			// The consumer has died, or has given the message back. If the consumer has
			// acknowledged the message, our attempt to claim it finds that out.
			delete(v.claimedByOthers, r)
			r.partition.waiting.insert(r.queueItem)
		}
	}
	v.claimNames = claimed
	return nil
}

// countPeers refreshes the number of consumers.
func (v *queueView) countPeers(ctx context.Context) error {
	names, _, f, err := v.watchDir(ctx, v.c.q.child(consumersName))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// An operator may have deleted our registration, but this consumer goes on.
	v.peers, v.consumerListing = max(1, len(names)), f
	return nil
}
