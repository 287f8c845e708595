package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// confirmRemoval waits for the outcome of the removal of a received message, and repeats
// the removal if it is unknown. It returns an error if the consumer may not remove
// messages.
func (c *consumer) confirmRemoval(cl *claim, e *commit.Entry) error {
	for round := 0; ; round++ {
		select {
		case <-e.Done():
		case <-c.cleanupCtx.Done():
			c.discardClaims(cl)
			return nil
		}
		err := e.Err()
		switch {
		case err == nil:
			c.pending.resolve(cl.messageRef, cl.czxid)
			cl.view.forgetMessage(cl.messageRef)
			cl.view.releaseHeld(1)
			return nil
		case commit.IsUnknown(err) || session.ClassOf(err) == session.ClassNoNode:
			// NoNode does not show whether the message or the claim is missing, nor which
			// client removed it. The message must not stay in the queue: the receiver has
			// it.
			_ = cl.view.s.Pause(c.cleanupCtx, round) // if the pause is cut short, the next request returns the reason
			if e, err = c.retryRemoval(c.cleanupCtx, cl); e != nil {
				continue
			}
		}
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassLost, session.ClassRemoved, session.ClassClosed:
			// The removal has happened, or the session is over. Then the message stays in
			// c.pending, and is removed without another delivery if this value claims it
			// again.
			return nil
		}
		// A message with children is one message's fault. Any other refusal, such as a
		// missing permission, would meet all messages: consuming must stop.
		unremovable := session.ClassOf(err) == session.ClassNotEmpty
		if unremovable {
			cl.view.skip(cl.messageRef, err)
		}
		c.discardClaims(cl)
		if unremovable || c.cleanupCtx.Err() != nil {
			return nil
		}
		return err
	}
}

// retryRemoval checks whether the message and our claim still exist, after a removal
// whose outcome is unknown or that found one of them missing. It starts to remove the
// znodes that still exist, and returns nil if nothing is left to remove.
func (c *consumer) retryRemoval(ctx context.Context, cl *claim) (*commit.Entry, error) {
	there, ours, err := cl.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case there && ours:
		return c.q.removals.StartOne(cl.view.s, cl.removeTx()), nil
	case there:
		// Another client has removed our claim. A consumer that has claimed the message
		// since delivers it again, and removes it: takeTx fails if there is such a claim.
		cl.view.releaseHeld(1)
		e := c.q.removals.StartOne(nil, cl.view.takeTx(cl.messageRef, -1))
		select {
		case <-e.Done():
		case <-ctx.Done():
			return nil, session.Cancelled(ctx)
		}
		if session.ClassOf(e.Err()) == session.ClassNodeExists {
			cl.view.markClaimed(cl.messageRef)
		} else {
			cl.view.relistPartition(cl.messageRef)
		}
		return nil, nil
	case ours:
		// Another client has removed the message.
		return c.q.removals.StartOne(cl.view.s, cl.releaseTx()), nil
	}
	c.pending.resolve(cl.messageRef, cl.czxid)
	cl.view.relistPartition(cl.messageRef)
	cl.view.releaseHeld(1)
	return nil, nil
}

// lookUp reports whether the message and our claim on it still exist.
func (cl *claim) lookUp(ctx context.Context) (there, ours bool, err error) {
	s := cl.view.s
	// A deposed leader would show a message whose removal its successor has committed.
	// Behind a commit, a znode that is absent now stays absent.
	if err := s.SyncQuorum(ctx, cl.view.c.q.path); err != nil {
		return false, false, err
	}
	results, err := s.MultiRead(ctx, session.ReadData(cl.view.path(cl.messageRef)), session.ReadData(cl.view.claimPath(cl.messageRef)))
	if err != nil {
		return false, false, err
	}
	item, name := results[0], results[1]
	for _, r := range results {
		if r.Err != nil && session.ClassOf(r.Err) != session.ClassNoNode {
			return false, false, r.Err
		}
	}
	// A znode of the same name but of another czxid is another message: its directory was
	// created again.
	there = item.Err == nil && item.Stat.Czxid == cl.czxid
	ours = name.Err == nil && cl.view.isOwnClaim(name)
	return there, ours, nil
}

// releaseClaims deletes the claims on messages that were not received, and requeues the
// messages.
func (c *consumer) releaseClaims(claims []*claim) {
	for round := 0; len(claims) > 0; round++ {
		v := claims[0].view
		_ = v.s.Pause(c.cleanupCtx, round-1) // if the pause is cut short, the next request returns the reason
		txs := make([]commit.Tx, len(claims))
		for i, cl := range claims {
			txs[i] = cl.releaseTx()
		}
		var again []*claim
		for i, e := range c.q.removals.Start(v.s, nil, txs...) {
			cl := claims[i]
			select {
			case <-e.Done():
			case <-c.cleanupCtx.Done():
				c.discardClaims(claims[i:]...)
				return
			}
			// Requeue the message only when the claim is known to be gone. Otherwise a new
			// claim of this value on the message could be confused with the old one.
			var ours bool
			var failed error
			looked := commit.IsUnknown(e.Err())
			if looked {
				_, ours, failed = cl.lookUp(c.cleanupCtx)
			}
			switch {
			case failed != nil:
				c.discardClaims(cl)
			case ours:
				again = append(again, cl)
			case looked || e.Err() == nil || session.ClassOf(e.Err()) == session.ClassNoNode:
				v.releaseHeld(1)
				v.requeue(cl.messageRef)
			}
		}
		claims = again
	}
}

// discardClaims leaves claims to the session's janitor, for example because Close does
// not wait any longer. Without that, no consumer could claim the messages as long as the
// session lives.
func (c *consumer) discardClaims(claims ...*claim) {
	for _, cl := range claims {
		gone := cl.view.s.DiscardOwn(cl.view.claimPath(cl.messageRef), c.id)
		cl.view.releaseHeld(1)
		c.spawn(func() {
			select {
			case <-gone:
				cl.view.requeue(cl.messageRef)
			case <-c.cleanupCtx.Done():
			}
		})
	}
}

// releaseAbsent deletes the claims on messages that do not exist. Only Close waits for
// these deletions.
func (c *consumer) releaseAbsent(gone []*claim) {
	if len(gone) == 0 {
		return
	}
	txs := make([]commit.Tx, len(gone))
	for i, cl := range gone {
		// A message of the same name that is created now must not be claimed before the
		// old claim is deleted: if the answer to the new claim were lost, findOwnClaims
		// would take the old claim for the new one.
		cl.view.markAbsent(cl.messageRef)
		cl.view.releaseHeld(1)
		txs[i] = cl.releaseTx()
	}
	entries := c.q.removals.Start(gone[0].view.s, nil, txs...)
	check := func() {
		for i, e := range entries {
			select {
			case <-e.Done():
			case <-c.cleanupCtx.Done():
			}
			cl := gone[i]
			// The janitor repeats the deletion until the claim or the session is gone.
			if c.cleanupCtx.Err() != nil || commit.IsUnknown(e.Err()) {
				select {
				case <-cl.view.s.DiscardOwn(cl.view.claimPath(cl.messageRef), c.id):
				case <-c.cleanupCtx.Done():
				}
			}
			cl.view.resolveAbsent(cl.messageRef)
		}
	}
	if !c.spawn(check) {
		check()
	}
}
