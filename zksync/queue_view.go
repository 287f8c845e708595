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
//	            pick                   claimed by us
//	waiting ------------> picked --------------------> (a claim)
//	   ^ ^                 |  |
//	   | +-----------------+  | markClaimed
//	   |      requeue         v
//	   +--------------- claimed by others
//	        listClaims
type queueView struct {
	c *consumer
	s *session.Session
	broadcast
	refreshing chan struct{} // held by the goroutine that asks the servers

	mu               sync.Mutex
	partitions       []*partition // in order
	partitionListing *staleFlag
	picked           map[messageRef]struct{}
	absent           map[messageRef]bool // the picked messages that do not exist; true if a later listing has the message
	claimedByOthers  map[messageRef]struct{}
	claimNames       map[string]struct{} // all claims, as of claimListing
	claimListing     *staleFlag
	peers            int // the number of consumers, this one included; 0 if this one is not registered
	consumerListing  *staleFlag
	held             int // our claims, and the messages that Takes are removing
	takes            int // the messages that Takes are removing
	load             *claimLoad
	claimBytes       int    // of each claim, in load
	onRelease        func() // called when held goes down
	lease            *session.Lease
	largestRecent    int // the size of the largest recent message, in bytes
	claimsDirExists  bool
}

func newQueueView(c *consumer, s *session.Session) *queueView {
	v := &queueView{c: c, s: s, refreshing: make(chan struct{}, 1), picked: make(map[messageRef]struct{}), claimedByOthers: make(map[messageRef]struct{}), absent: make(map[messageRef]bool), load: claimLoadOf(s), claimBytes: c.q.claimBytes()}
	if c.q.kind.parsePartition == nil {
		// The partition without a name stands for the queue's own directory.
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

// dir returns the path of the directory of a partition.
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

// A quota returns the number of messages to pick. waiting is the number of messages
// that wait or that other consumers have claimed, and peers the number of consumers.
type quota func(waiting, peers int) int

// next picks waiting messages, in order. If patient, it waits for a message, and calls
// resting before it waits.
func (v *queueView) next(ctx context.Context, most quota, patient bool, resting func()) ([]messageRef, error) {
	for {
		// Subscribe before the look: a watch that fires between the look and the wait
		// must end the wait.
		notified := v.subscribe()
		refs, wake, err := v.refreshAndPick(ctx, most)
		switch {
		case err != nil || len(refs) > 0:
			return refs, err
		case wake.stale:
			// A watch has fired since the refresh. An earlier partition may have a new
			// message, which must be delivered first.
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

// waitUntil waits until notified is closed, or until a time, if it is not zero.
func (v *queueView) waitUntil(ctx context.Context, notified <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		d := time.Until(until)
		if d <= 0 {
			// A timer of zero has brought the runtime down in a bubble of synctest.
			return nil
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

// A nextWakeUp says when a consumer that found no message must look again: when a
// watch fires, or earlier.
type nextWakeUp struct {
	stale bool      // at once: a listing has become stale
	until time.Time // at this time, if it is not zero: a known message falls due
}

// refreshAndPick refreshes the stale listings, and picks messages from the listings.
func (v *queueView) refreshAndPick(ctx context.Context, most quota) ([]messageRef, nextWakeUp, error) {
	// One goroutine asks the servers at a time: the others would send the same requests.
	// A channel is the lock, and not a mutex, because the wait for the requests of
	// another goroutine must end with ctx.
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

// refreshStale refreshes the stale listings that decide which message is the next one.
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
		// The listings of later partitions do not matter while this one has a message
		// that is due. Therefore a long queue is not listed again for each message.
		if k.delayed && p.key > now || p.waiting.countDue(now) > 0 {
			break
		}
		// A partition whose time is over is listed without an event: listMessages then
		// deletes its directory.
		if p.listing.isStale() || k.delayed && !p.undeletable && p.waiting.len() == 0 && p.expiry() <= now {
			stale = append(stale, p)
		}
	}
	// A lone consumer saves the list of claims: there are no claims of others. If one
	// exists nevertheless, the server refuses our claim, and claimAll lists the claims.
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
