package queue

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

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
		if v.partitions.skips() {
			// The consumer may have begun to skip a message since it joined the line, which it leaves now.
			if err := wait(ctx); err != nil {
				return sel, err
			}
		}
		if err := znode.WaitUntil(ctx, v.s, notified, wake.timer()); err != nil {
			return sel, err
		}
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
		if err == nil {
			st, err = v.refreshListings(ctx, st)
		}
		if err == nil {
			err = v.endUnknown(ctx, st) // before a recovery, for which the table may have no room
		}
		if err != nil {
			return selection{}, nextWakeUp{}, err
		}
		if v.order.mustRecover(st) {
			// Before the pick: the messages of a dead consumer come first.
			if err := recoverClaims(ctx, v, st); err != nil {
				return selection{}, nextWakeUp{}, err
			}
			continue
		}
		// Another goroutine may have written the order znode meanwhile.
		if v.order.known() == st {
			sel, wake := v.partitions.pick(most, st)
			if st.needsRecovery() {
				wake.before(v.order.nextRecovery()) // the last one had no room for all messages
			}
			return sel, wake, nil
		}
	}
}
