package queue

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A view is the knowledge of one consumer about a queue, through one session: the messages
// that wait, and the state of the order znode. All goroutines of a consumer share it. It lists
// a directory again only if a watch reports a change and the directory matters for the
// next message: while messages of the last listing are left, nothing is listed.
type view struct {
	c          *Consumer
	s          *session.Session
	changed    broadcast     // wakes the goroutines that wait for a message
	refreshing chan struct{} // held by the goroutine that asks the servers
	order      orderZnode
	partitions partitionList
	claims     claimCount
}

func newView(c *Consumer, s *session.Session) *view {
	v := &view{c: c, s: s, refreshing: make(chan struct{}, 1), claims: claimCount{s: s}}
	v.order.c, v.order.s, v.order.dir, v.order.changed = c, s, c.cfg.child(claimsName), &v.changed
	v.partitions.c, v.partitions.order, v.partitions.changed = c, &v.order, &v.changed
	if c.cfg.Kind.ParsePartition == nil {
		v.partitions.all = []*partition{newPartition(&c.cfg, "", 0)}
	}
	return v
}

// stop stops all watches.
func (v *view) stop() {
	v.order.stop()
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	for _, p := range v.partitions.all {
		p.listing.stopWatch()
		if p.dirWatch != nil {
			p.dirWatch.Stop()
		}
	}
	v.partitions.listing.stopWatch()
}

// close deletes the ledger, and gives back the messages in it. No call is under way.
func (v *view) close() {
	defer v.stop()
	// Messages that were received and not settled have kept the lease until now.
	defer v.claims.end()
	l := v.c.ledger
	if l == nil || l.v != v || v.s.Err() != nil || l.usable.Err() == nil && l.close(v.c.cleanupCtx) == nil {
		return
	}
	// The messages are free when the janitor of the session has deleted the ledger, and
	// another consumer has found out.
	select {
	case <-v.s.Discard(l.path):
	case <-v.c.cleanupCtx.Done():
	}
}

// skip leaves a picked message in the queue and does not pick it again, so that the other
// messages are delivered.
func (v *view) skip(r messageRef, why error) {
	v.partitions.skip(r)
	if count, log := v.c.skips.add(fmt.Errorf("skipped %s: %w", r.path(), why)); log {
		v.c.cfg.Manager.Logger().Warn("message skipped", zap.String("path", r.path()), zap.Int("skipped", count), zap.Error(why))
	}
}

// invalidate commits a transaction without effect, and forgets everything that was read.
// The watches stay until the directories are listed again.
func (v *view) invalidate(ctx context.Context) error {
	// Behind a commit, the listings have every message whose Put has returned by now. A
	// server that lags, or a deposed leader, might not show it, and sends no event.
	if err := v.s.SyncQuorum(ctx, v.c.cfg.Path); err != nil {
		return err
	}
	// The other waiting goroutines must look again, too: the new listings may have more
	// messages than this goroutine takes, and no watch fires for them. Notify even if
	// this goroutine fails before it takes a message.
	defer v.changed.notify()
	v.order.forget(v.order.known())
	v.partitions.mu.Lock()
	defer v.partitions.mu.Unlock()
	v.partitions.listing.markStale()
	for _, p := range v.partitions.all {
		p.listing.markStale()
	}
	return nil
}

// next picks free messages, in order. It waits until there is a message if wait is not
// nil, and calls wait before it waits. wait returns when this consumer should look for messages.
// If inLine, wait is called before anything is listed.
func (v *view) next(ctx context.Context, most quota, wait func(context.Context) error, inLine bool) (selection, error) {
	armed := false
	if inLine && !v.partitions.hasFree() {
		if err := wait(ctx); err != nil {
			return selection{}, err
		}
		armed = true
	}
	for {
		// Subscribe before the look: a watch that fires between the look and the wait
		// must end the wait.
		notified := v.changed.subscribe()
		sel, wake, err := v.refreshAndPick(ctx, most, armed)
		switch {
		case err != nil || sel.free:
			return sel, err
		case wake.stale:
			// A watch has fired since the refresh. An earlier partition may have a new
			// message, which must be delivered first.
			continue
		case wait == nil:
			return sel, nil
		case !armed:
			if err := wait(ctx); err != nil {
				return sel, err
			}
			armed = true
			continue
		}
		if err := waitUntil(ctx, v.s, notified, wake.until); err != nil {
			return sel, err
		}
	}
}

// waitUntil waits until notified is closed, or until a time, if it is not zero.
func waitUntil(ctx context.Context, s *session.Session, notified <-chan struct{}, until time.Time) error {
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
	case <-s.Done():
		return znode.LossOf(s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// refreshAndPick refreshes the stale listings, and picks messages. If armed, watches report
// every change that may make a message free.
func (v *view) refreshAndPick(ctx context.Context, most quota, armed bool) (selection, nextWakeUp, error) {
	// One goroutine asks the servers at a time: the others would send the same requests.
	// A channel is the lock, and not a mutex, because the wait for the requests of
	// another goroutine must end with ctx.
	select {
	case v.refreshing <- struct{}{}:
		defer func() { <-v.refreshing }()
	case <-ctx.Done():
		return selection{}, nextWakeUp{}, session.Cancelled(ctx)
	}
	for round := 0; ; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return selection{}, nextWakeUp{}, err
		}
		st, err := v.order.refresh(ctx, armed)
		if err == errOrderGone {
			continue
		}
		if err != nil {
			return selection{}, nextWakeUp{}, err
		}
		if err := v.refreshListings(ctx, st); err != nil {
			return selection{}, nextWakeUp{}, err
		}
		if st.needsRecovery() {
			// Before the pick: the messages of a dead consumer come first.
			if err := recoverClaims(ctx, v, st); err != nil {
				return selection{}, nextWakeUp{}, err
			}
			continue
		}
		// Another goroutine may have written the order znode meanwhile.
		if v.order.known() == st {
			sel, wake := v.partitions.pick(most, st)
			return sel, wake, nil
		}
	}
}
