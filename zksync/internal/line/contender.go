package line

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A contenderState says what a contender does. Of the states, unlisted, blocked and first
// are the states of a contender that waits. LocalQueue and docs/architecture.md have the
// transitions.
type contenderState uint8

const (
	unlisted  contenderState = iota // it must list the line to know which contenders block it
	blocked                         // it watches the contenders that block it
	first                           // no contender blocks it; the lease is not held yet
	granted                         // a goroutine holds it, or it is handed on
	lingering                       // its last holder has released it, and it is kept for the next one
	inDoubt                         // a transaction that deletes its znode may have been carried out
	gone                            // its znode is deleted, is being deleted, or was exchanged for others
)

// A contender is a znode of ours in a line. One goroutine at a time uses it: the
// goroutine that waits in line or holds.
type contender struct {
	lineView
	lease      *session.Lease
	state      contenderState
	grant      *Grant           // the newest
	contention *contentionWatch // since it lingered for the first time
	holds      int              // of this process, since it was granted or acquired again
	since      time.Time        // when the turn of this process began
}

// confirm finds the reason of a removal. The end of our session removes our znode as
// well, and the server may report the removal first: another client removed the znode
// only if the leader still knows the session.
func (c *contender) confirm(ctx context.Context, err error) error {
	if session.ClassOf(err) == session.ClassRemoved {
		if err := c.s.SyncQuorum(ctx, c.line.Dir.Path); err != nil {
			return err
		}
	}
	return err
}

// wait waits until no contender blocks this one and the lease is held. If ctx ends, the
// contender stays in line, and wait may be called again. After any other error call
// discard. The caller must confirm the error.
func (c *contender) wait(ctx context.Context) error {
	var wait *session.Wait
	defer func() {
		wait.Stop()
		c.line.newest.CompareAndSwap(c.ahead, nil)
	}()
	for round := 0; ; {
		if c.state == unlisted {
			if err := znode.ReadPatiently(ctx, c.s, c.line.Op, c.line.Dir.Path, func() error { return c.look(ctx) }); err != nil {
				return err
			}
		}
		if c.state == first {
			return c.hold(ctx)
		}
		if wait == nil {
			c.line.newest.Store(c.ahead)
			level := zap.WarnLevel
			if c.line.Standby {
				level = zap.InfoLevel
			}
			wait = c.line.Manager.StartWaitAt(level, c.line.Op, c.line.Dir.Path, c.ahead.reason)
		}
		if c.state == unlisted {
			// Most often the contenders ahead leave one after another, and the next listing shows
			// it. A server that lists a contender and denies that it exists must not be asked in a
			// tight loop.
			if err := c.s.Pause(ctx, round); ctx.Err() != nil {
				return wait.Cancelled(ctx)
			} else if err != nil {
				return err
			}
			round++
			continue
		}
		round = 0
		// While the contender is blocked, every change that could grant it, or end its wait,
		// fires one of these watches.
		select {
		case ev := <-c.own.Events():
			if err := c.ownChanged(ev); err != nil {
				return err
			}
		case ev := <-c.near.watch.Events():
			c.nearChanged(ev)
		case <-c.far.watch.Events():
			// The nearest contender still blocks us. A listing shows whether it is now the
			// only one: then its end will grant us the hold without a request.
			c.far, c.state = neighbour{}, unlisted
		case <-c.s.Done():
			return c.s.Err() // watches get their events later if functions are still awaited
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// ownChanged handles an event of the watch on our own znode.
func (c *contender) ownChanged(ev zk.Event) error {
	// nearChanged must not trust the watches on the neighbours without a watch on our own
	// znode, so all of them are armed anew.
	c.own, c.state = nil, unlisted
	c.forgetNeighbours()
	if ev.Type == zk.EventNodeDeleted {
		return session.ErrRemoved
	}
	return nil // the data has changed, or the session has ended: the next look reports that
}

// nearChanged handles an event of the watch on the nearest contender that blocks us.
func (c *contender) nearChanged(ev zk.Event) {
	// The event alone proves that no contender blocks us only if near was the last one,
	// our own znode still existed on the same connection, and nothing can come between.
	isFirst := ev.Type == zk.EventNodeDeleted && c.last && c.unbroken() && !c.line.Class.overtaken()
	c.near, c.state = neighbour{}, unlisted
	if isFirst {
		c.state = first
	}
}

// look lists the line, and watches our own znode and the two nearest contenders that
// block us. If many contenders may wait for the same ones, it watches only the nearest.
// The contender is unlisted afterwards if the nearest contender has left already.
func (c *contender) look(ctx context.Context) error {
	f, err := c.survey(ctx)
	if err != nil {
		return err
	}
	// No contender can come between near and us later on, except for a reader that was
	// downgraded (see Class.overtaken): sequence numbers only grow.
	c.last = f.last
	if f.last {
		c.lease.Prepare() // next in line: the grant will need no request
	}
	if f.near == "" {
		c.forgetNeighbours()
		c.state = first
		return nil
	}
	if c.line.Class.together() {
		// Each of many readers would list the line at each departure ahead of them.
		f.far = ""
	}
	if err := c.watchNeighbours(ctx, f.near, f.far); err != nil {
		return err
	}
	if c.near.watch != nil {
		// A wait without a watch on near would never end.
		c.state = blocked
	}
	return nil
}

// tryHold reports whether no contender blocks this one. If so, it is granted. Unlike
// wait, tryHold watches no other contender.
func (c *contender) tryHold(ctx context.Context) (bool, error) {
	if c.state != first {
		// Two contenders that try at once may both see each other. Then the earlier one is
		// still granted, because it is first in this listing.
		f, err := c.survey(ctx)
		if err != nil || f.near != "" {
			return false, c.confirm(ctx, err)
		}
	}
	return true, c.hold(ctx)
}

// hold waits until the lease is held. Then the contender is granted.
func (c *contender) hold(ctx context.Context) error {
	c.state = unlisted // after a failure the line may have changed
	err := znode.Grant(ctx, c.lease)
	if err == nil {
		c.begin()
	}
	return err
}

// begin makes the contender granted: its lease is held.
func (c *contender) begin() {
	c.grant = newGrant(c.s, c.lease, c.token, uniqueNames{}, c.own, c.path)
	c.own = nil // the guard stops it
	c.state = granted
	c.holds, c.since = 1, time.Now()
}

// exchange gives the lease to the grant of znodes that a transaction has created in
// exchange for the contender.
func (c *contender) exchange(token int64, paths []string) *Grant {
	// The guard of the old znode stops first: it may take the exchange for a removal, and must
	// not note the loss of the new znode.
	c.stop()
	// The lease is held all the time: from here on the session's transactions check the
	// new znode, since the old one does not exist.
	c.lease.Own(paths[0])
	c.state = gone
	return newGrant(c.s, c.lease, token, uniqueNames{}, nil, paths...)
}

// stop stops the watches and the guard. The znode and the lease stay.
func (c *contender) stop() {
	c.contention.close()
	if c.grant != nil {
		c.grant.stop()
	}
	c.own.Stop()
	c.own = nil
	c.forgetNeighbours()
}

// removed ends a contender whose znode another client has removed, and returns ErrRemoved.
func (c *contender) removed() error {
	c.state = gone
	c.lease.Lose() // for the observer: no watch may have told of the removal yet
	c.close()
	return session.ErrRemoved
}

// close stops everything and ends the lease. The znode must be deleted.
func (c *contender) close() {
	c.stop()
	if c.state == inDoubt {
		// A transaction of ours may have deleted the znode. So its absence, which the guard or the
		// session may have found, is no loss that the observer should hear of.
		c.lease.Own(c.path)
	}
	c.lease.End()
	c.state = gone
}

// discard deletes the znode in the background. The deletion is retried until the znode is
// gone or the session has ended, or until the server refuses; see Session.Discard.
func (c *contender) discard() <-chan error {
	c.close()
	return c.s.Discard(c.path)
}

// release deletes the znode of a contender that was held, and waits for the answer; see
// Grant.remove.
func (c *contender) release() error {
	defer c.stop()
	c.state = gone
	return c.grant.remove()
}
