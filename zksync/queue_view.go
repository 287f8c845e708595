package zksync

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A queueView is the view of a queue through one session: the messages that wait, and
// the messages that other consumers have claimed. All consumers of one value share
// it. It reads a directory again only if a watch reports a change and a consumer
// needs the directory for its next message: while messages of the last listing are
// left, nothing is listed.
//
//	            next                  claimed by us
//	waiting ------------> taken --------------------> (a claimed)
//	   ^ ^                 |  |
//	   | +-----------------+  | claimed by another
//	   |      back            v
//	   +------------------- passed
//	        its claim is gone
type queueView struct {
	c *consumer
	s *session.Session
	broadcast
	refreshing chan struct{} // held by the goroutine that asks the servers

	mu               sync.Mutex
	partitions       []*partition // in order
	partitionListing *staleFlag
	picked           map[messageRef]struct{}
	absent           map[messageRef]bool // the taken messages that do not exist; whether they have been listed since
	claimedByOthers  map[messageRef]struct{}
	claimNames       map[string]struct{} // the claims there are, while the next is not tripped
	claimListing     *staleFlag
	peers            int // the consumers, us included; 0 if we don't count among them
	consumerListing  *staleFlag
	held             int // our claims, and the messages that Takes are removing
	takes            int // the latter
	load             *claimLoad
	claimBytes       int    // of each claim, in load
	onRelease        func() // called when one of held is gone
	lease            *session.Lease
	largestRecent    int  // how large messages were of late
	claimsDirExists  bool // the directory of claims is there
}

func newQueueView(c *consumer, s *session.Session) *queueView {
	v := &queueView{c: c, s: s, refreshing: make(chan struct{}, 1), picked: make(map[messageRef]struct{}), claimedByOthers: make(map[messageRef]struct{}), absent: make(map[messageRef]bool), load: claimLoadOf(s), claimBytes: c.q.claimBytes()}
	if c.q.kind.parsePartition == nil {
		v.partitions = []*partition{{}}
	}
	return v
}

// stopWatches stops all watches.
func (v *queueView) stopWatches() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.partitions {
		p.listing.stopWatch()
		if p.dirWatch != nil {
			p.dirWatch.Stop()
		}
	}
	for _, f := range []*staleFlag{v.partitionListing, v.claimListing, v.consumerListing} {
		f.stopWatch()
	}
}

// dir is where the messages of a partition are.
func (v *queueView) dir(p *partition) string {
	if p.name == "" {
		return v.c.q.path
	}
	return v.c.q.child(p.name)
}

func (v *queueView) path(r messageRef) string { return znode.Join(v.dir(r.partition), r.name) }

func (v *queueView) claimPath(r messageRef) string {
	return znode.Join(v.c.q.child(claimsName), r.claimName())
}

// A quota returns how many messages to take, from the number of waiting messages,
// claimed ones included, and the number of consumers.
type quota func(waiting, peers int) int

// next takes messages that wait, in order. It waits for one, if patient, and calls
// resting before it does.
func (v *queueView) next(ctx context.Context, most quota, patient bool, resting func()) ([]messageRef, error) {
	for {
		notified := v.subscribe()
		refs, wake, err := v.refreshAndPick(ctx, most)
		switch {
		case err != nil || len(refs) > 0:
			return refs, err
		case wake.stale:
			continue
		case !patient:
			return nil, nil
		}
		resting()
		if err := v.waitUntil(ctx, notified, wake.until); err != nil {
			return nil, err
		}
	}
}

// waitUntil waits for a notify or for a time, if that is not zero.
func (v *queueView) waitUntil(ctx context.Context, notified <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		d := time.Until(until)
		if d <= 0 {
			return nil // no timer for that: in a bubble one of zero has brought the runtime down
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-notified:
		return nil
	case <-due:
		return nil
	case <-v.s.Done():
		return znode.LossOf(v.s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// A nextWakeUp is the result of a look that finds no message to take.
type nextWakeUp struct {
	stale bool      // it must be looked again, at once
	until time.Time // when a message that already exists falls due, if not zero
}

func (v *queueView) refreshAndPick(ctx context.Context, most quota) ([]messageRef, nextWakeUp, error) {
	select {
	case v.refreshing <- struct{}{}:
		defer func() { <-v.refreshing }()
	case <-ctx.Done():
		return nil, nextWakeUp{}, session.Cancelled(ctx)
	}
	if err := v.refreshStale(ctx); err != nil {
		return nil, nextWakeUp{}, err
	}
	refs, wake := v.pick(most)
	return refs, wake, nil
}

// refreshStale refreshes the stale listings that must be known before a message can be taken.
func (v *queueView) refreshStale(ctx context.Context) error {
	k := v.c.q.kind
	if k.parsePartition != nil && v.partitionListing.isStale() {
		if err := v.listPartitions(ctx); err != nil {
			return err
		}
	}
	now := time.Now().UnixMilli()
	v.mu.Lock()
	var stale []*partition
	for _, p := range v.partitions {
		if k.delayed && p.key > now || p.waiting.countDue(now) > 0 {
			break
		}
		if p.listing.isStale() || k.delayed && !p.undeletable && p.waiting.len() == 0 && p.expiry() <= now {
			stale = append(stale, p)
		}
	}
	// Without other consumers there are no other claims.
	claims := v.claimListing.isStale() && (len(v.claimedByOthers) > 0 || len(stale) > 0 && v.peers != 1)
	consumers := v.peers > 0 && v.consumerListing.isStale()
	v.mu.Unlock()

	if len(stale) == 0 && !claims && !consumers {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxListings)
	if claims {
		g.Go(func() error { return v.listClaims(ctx) })
	}
	if consumers {
		g.Go(func() error { return v.countPeers(ctx) })
	}
	for _, p := range stale {
		g.Go(func() error { return v.listMessages(ctx, p) })
	}
	return g.Wait()
}
