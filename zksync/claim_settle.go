package zksync

import (
	"context"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// settle waits for the outcome of the removal of a received message. It returns an
// error if messages cannot be removed here at all.
func (c *consumer) settle(cl *claim, e *commit.Entry) error {
	for round := 0; ; round++ {
		select {
		case <-e.Done():
		case <-c.life.Done():
			c.leaveBehind(cl)
			return nil
		}
		err := e.Err()
		switch {
		case err == nil:
			c.owed.settle(cl.ref, cl.czxid)
			cl.o.done(cl.ref)
			cl.o.release(1)
			return nil
		case commit.IsUnknown(err) || session.ClassOf(err) == session.ClassNoNode:
			_ = cl.o.s.Pause(c.life, round) // the next request returns the reason if the pause was cut short
			if e, err = c.retry(c.life, cl); e != nil {
				continue
			}
		}
		switch session.ClassOf(err) {
		case session.ClassOK, session.ClassLost, session.ClassRemoved, session.ClassClosed:
			return nil
		}
		unremovable := session.ClassOf(err) == session.ClassNotEmpty
		if unremovable {
			cl.o.skip(cl.ref, err)
		}
		c.leaveBehind(cl)
		if unremovable || c.life.Err() != nil {
			return nil
		}
		return err
	}
}

// retry checks whether the message and our claim still exist, after a removal failed
// because one of them was missing, and starts to remove the rest. It returns nil if
// nothing is left to remove.
func (c *consumer) retry(ctx context.Context, cl *claim) (*commit.Entry, error) {
	there, ours, err := cl.look(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case there && ours:
		return c.q.removals.StartOne(cl.o.s, cl.removal()), nil
	case there:
		// Another client has removed our claim. A consumer that has claimed the
		// message since delivers it again.
		cl.o.release(1)
		e := c.q.removals.StartOne(nil, cl.o.taking(cl.ref, -1))
		select {
		case <-e.Done():
		case <-ctx.Done():
			return nil, session.Cancelled(ctx)
		}
		if session.ClassOf(e.Err()) == session.ClassNodeExists {
			cl.o.pass(cl.ref)
		} else {
			cl.o.suspect(cl.ref)
		}
		return nil, nil
	case ours:
		return c.q.removals.StartOne(cl.o.s, cl.surrender()), nil
	}
	c.owed.settle(cl.ref, cl.czxid)
	cl.o.suspect(cl.ref)
	cl.o.release(1)
	return nil, nil
}

// look says whether the message is still there, and whether our claim is.
func (cl *claim) look(ctx context.Context) (there, ours bool, err error) {
	s := cl.o.s
	// The sync makes sure that a znode that is absent now stays absent.
	if err := s.SyncQuorum(ctx, cl.o.c.q.path); err != nil {
		return false, false, err
	}
	results, err := s.MultiRead(ctx, session.ReadData(cl.o.path(cl.ref)), session.ReadData(cl.o.claimPath(cl.ref)))
	if err != nil {
		return false, false, err
	}
	item, name := results[0], results[1]
	for _, r := range results {
		if r.Err != nil && session.ClassOf(r.Err) != session.ClassNoNode {
			return false, false, r.Err
		}
	}
	there = item.Err == nil && item.Stat.Czxid == cl.czxid
	ours = name.Err == nil && cl.o.owns(name)
	return there, ours, nil
}

// giveBack ends claims on messages that were not received, which are back in
// their places then.
func (c *consumer) giveBack(claims []*claim) {
	for round := 0; len(claims) > 0; round++ {
		o := claims[0].o
		_ = o.s.Pause(c.life, round-1) // the next request returns the reason if the pause was cut short
		txs := make([]commit.Tx, len(claims))
		for i, cl := range claims {
			txs[i] = cl.surrender()
		}
		var again []*claim
		for i, e := range c.q.removals.Start(o.s, nil, txs...) {
			cl := claims[i]
			select {
			case <-e.Done():
			case <-c.life.Done():
				c.leaveBehind(claims[i:]...)
				return
			}
			var ours bool
			var failed error
			looked := commit.IsUnknown(e.Err())
			if looked {
				_, ours, failed = cl.look(c.life)
			}
			switch {
			case failed != nil:
				c.leaveBehind(cl)
			case ours:
				again = append(again, cl)
			case looked || e.Err() == nil || session.ClassOf(e.Err()) == session.ClassNoNode:
				o.release(1)
				o.back(cl.ref)
			}
		}
		claims = again
	}
}

// leaveBehind makes the session remove claims that this consumer will not remove, for
// example because Close does not wait any longer: otherwise no consumer could claim
// the messages for as long as the session lives.
func (c *consumer) leaveBehind(claims ...*claim) {
	for _, cl := range claims {
		gone := cl.o.s.DiscardOwn(cl.o.claimPath(cl.ref), c.id)
		cl.o.release(1)
		c.spawn(func() {
			select {
			case <-gone:
				cl.o.back(cl.ref)
			case <-c.life.Done():
			}
		})
	}
}

// drop ends claims on messages that do not exist. Only Close waits for the end of
// these claims. A message that is put back meanwhile must not be claimed before the
// old claim is deleted: if the answer to the new claim is lost, the old claim could
// be taken for the new one.
func (c *consumer) drop(gone []*claim) {
	if len(gone) == 0 {
		return
	}
	txs := make([]commit.Tx, len(gone))
	for i, cl := range gone {
		cl.o.dropping(cl.ref)
		cl.o.release(1)
		txs[i] = cl.surrender()
	}
	entries := c.q.removals.Start(gone[0].o.s, nil, txs...)
	check := func() {
		for i, e := range entries {
			select {
			case <-e.Done():
			case <-c.life.Done():
			}
			cl := gone[i]
			if c.life.Err() != nil || commit.IsUnknown(e.Err()) {
				select {
				case <-cl.o.s.DiscardOwn(cl.o.claimPath(cl.ref), c.id):
				case <-c.life.Done():
				}
			}
			cl.o.dropped(cl.ref)
		}
	}
	if !c.spawn(check) {
		check()
	}
}
