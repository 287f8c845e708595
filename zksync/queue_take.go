package zksync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// Take waits for the first message that no other consumer has claimed, removes it
// from the queue, and returns it: exactly once, even over lost connections and
// sessions, and beside clients in other languages. It costs one transaction and
// claims nothing in advance.
//
// A waiting Take is not logged, because an empty queue is not a fault. When ctx ends
// before the removal of a message was sent, Take has taken nothing, and the error says
// whether the queue was empty or consumers had claimed all its messages. When ctx ends
// while the removal is under way, Take returns the data of the message at once, with an
// error that is ErrOutcomeUnknown and wraps the reason of ctx: the message is removed
// and no other consumer gets it, or it stays in the queue and is delivered again. The
// caller should handle the data as data that may be delivered twice. Data that is
// dropped may be lost. Close does not end a removal that is under way, but waits for its
// answer, for five seconds at most.
//
// Take also returns the data with ErrOutcomeUnknown where the answer to the removal was
// lost, another client has removed the marker, and the message is gone: this Take or a
// client in another language removed the message. If the message is still there Take
// goes on instead.
//
// Take fails with ErrQueueClosed when the value is closed, with ErrClosed when the
// Manager is.
func (q *queue) Take(ctx context.Context) ([]byte, error) {
	data, _, err := q.consumer.takeMessage(ctx, true)
	return data, q.opError("take", err)
}

// TryTake is Take without waiting: it reports false if there was no message to take
// at the time of the call. To find out, TryTake commits a transaction without effect
// (see session.Session.SyncQuorum): poll with Take and a ctx rather than with
// TryTake.
func (q *queue) TryTake(ctx context.Context) ([]byte, bool, error) {
	data, ok, err := q.consumer.takeMessage(ctx, false)
	return data, ok, q.opError("tryTake", err)
}

// takeMessage carries out Take and, if patient is false, TryTake.
func (c *consumer) takeMessage(ctx context.Context, patient bool) (data []byte, ok bool, err error) {
	if err := c.q.checkUsable(); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil {
		return nil, false, session.Cancelled(ctx)
	}
	if err := c.beginCall(); err != nil {
		return nil, false, err
	}
	defer c.endCall()
	// Two contexts: Close ends the wait for a message at once. It does not end the wait
	// for the answer to a removal, because the caller would not know whether the message
	// is its own.
	caller, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrQueueClosed) })()
	removing, cancelRemoving := context.WithCancelCause(ctx)
	defer cancelRemoving(nil)
	defer context.AfterFunc(c.cleanupCtx, func() { cancelRemoving(ErrQueueClosed) })()
	var unclear error
	wait := &takeWait{c: c, caller: caller}
	defer wait.end()
	err = c.q.m.Do(caller, func(ctx context.Context, s *session.Session) error {
		var err error
		data, ok, err = c.viewOf(s).takeOne(ctx, removing, wait, patient)
		if ok && err != nil {
			// The removal may have happened. Do must not call this function again: it would
			// take a second message, and the first one would be lost.
			unclear, err = err, nil
		}
		return err
	})
	switch {
	case unclear != nil:
		return data, ok, unclear
	case err != nil && c.ctx.Err() != nil && ctx.Err() == nil:
		err = ErrQueueClosed
	}
	return data, ok, err
}

// one is the quota of a Take.
func one(int, int) int { return 1 }

// takeOne takes a message under one session. ctx ends with the session, with the caller,
// and when Close begins. The context removing, which limits the wait for a removal that
// was sent, ends with the caller or when Close stops waiting: the marker tells the
// outcome of a removal under another session, too.
func (v *queueView) takeOne(ctx, removing context.Context, wait *takeWait, patient bool) ([]byte, bool, error) {
	// TryTake reports that there is no message only after a look behind a commit, and
	// needs one such look. Take waits for an event instead.
	looked := patient
	var last string // the message of the last attempt
	for again := 0; ; {
		if !looked && v.knowsNoMessage() {
			if err := v.invalidate(ctx); err != nil {
				return nil, false, err
			}
			looked = true
		}
		refs, err := v.next(ctx, one, patient, wait.start)
		if wait.caller.Err() != nil && session.ClassOf(err) == session.ClassCancelled {
			return nil, false, wait.cancelled(err)
		}
		if err != nil || len(refs) == 0 && looked {
			return nil, false, err
		}
		if len(refs) == 0 {
			continue
		}
		// now is taken before the read. The committer must not repeat a removal that relies
		// on an earlier directory: see tx.read.
		r, now := refs[0], v.c.q.removals.Epoch()
		// Another consumer may have been faster. If the same message fails again and again,
		// there is another reason, such as a server that lags: pause before each attempt.
		if again++; r.claimName() != last {
			last, again = r.claimName(), 0
		}
		if err := v.s.Pause(ctx, again); err != nil {
			v.requeue(r)
			return nil, false, err
		}
		// Read before the removal, whose answer has no data. The version in the
		// transaction makes sure that the removed message has this data.
		at := time.Now()
		data, stat, err := v.s.Get(ctx, v.path(r))
		switch {
		case session.ClassOf(err) == session.ClassNoNode:
			v.forgetMessage(r)
			continue
		case session.ClassOf(err) == session.ClassNoAuth:
			v.skip(r, err)
			continue
		case err != nil:
			v.requeue(r)
			return nil, false, err
		}
		if err = v.ensureClaimsDir(ctx); err != nil {
			v.requeue(r)
			return nil, false, err
		}
		v.holdTake()
		t := v.takeTx(r, stat.Version)
		t.Epoch, t.ReadAt = now, at
		// The transaction relies on no claim of this session, so it may be sent again, and
		// its outcome may be looked up, under another session.
		e := v.c.q.removals.StartOne(nil, t)
		gone := true
		err = e.Wait(removing)
		unclear := commit.IsUnknown(err)
		// The marker was removed by another client, so that it does not tell the outcome.
		// The message itself may tell.
		if unclear && removing.Err() == nil {
			gone, err = v.c.removalOutcome(removing, v.path(r), stat.Czxid, err)
		}
		if unclear && gone && removing.Err() != nil {
			v.followRemoval(r, stat.Czxid, e)
			return data, true, err
		}
		v.releaseTake()
		class := session.ClassOf(err)
		switch {
		case !gone:
			v.requeue(r)
		case err == nil, unclear:
			v.forgetMessage(r)
			if v.c.pending.resolve(r, stat.Czxid) {
				// Chan has delivered this message, and failed to remove it. It must not be
				// delivered again.
				continue
			}
			return data, true, err
		case class == session.ClassNodeExists:
			v.markClaimed(r) // the creation in takeTx has met a claim
		case class == session.ClassNoNode:
			// The message is gone, or the directory of the claims. The next read, or
			// ensureClaimsDir, finds out which.
			v.mu.Lock()
			v.claimsDirExists = false
			v.mu.Unlock()
			v.requeue(r)
		case class == session.ClassNotEmpty:
			v.skip(r, err)
		case class == session.ClassBadVersion, err == commit.ErrStale:
			v.requeue(r) // to read it again: the data may have changed
		default:
			v.requeue(r)
			return nil, false, err
		}
	}
}

// knowsNoMessage reports whether no message that is due is known to wait.
func (v *queueView) knowsNoMessage() bool {
	now := time.Now().UnixMilli()
	v.mu.Lock()
	defer v.mu.Unlock()
	return !slices.ContainsFunc(v.partitions, func(p *partition) bool { return p.waiting.countDue(now) > 0 })
}

// invalidate commits a transaction without effect, and marks all listings as stale. The
// watches stay until the directories are listed again.
func (v *queueView) invalidate(ctx context.Context) error {
	// Behind a commit, the listings have every message whose Put has returned by now. A
	// server that lags, or a deposed leader, might not show it, and sends no event.
	if err := v.s.SyncQuorum(ctx, v.c.q.path); err != nil {
		return err
	}
	// The other waiting goroutines must look again, too: the new listings may have more
	// messages than this goroutine takes, and no watch fires for them. Notify even if
	// this goroutine fails before it takes a message.
	defer v.notify()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.partitionListing.markStale()
	for _, p := range v.partitions {
		p.listing.markStale()
	}
	v.claimListing.markStale()
	return nil
}

// ensureClaimsDir creates the directory of the claims, in which takeTx creates and
// deletes a znode.
func (v *queueView) ensureClaimsDir(ctx context.Context) error {
	v.mu.Lock()
	exists := v.claimsDirExists
	v.mu.Unlock()
	if exists {
		return nil
	}
	dir := v.c.q.child(claimsName)
	if err := v.s.MakeDir(ctx, dir); err != nil {
		// A server checks the permission to create before it checks whether the znode
		// exists: a consumer without the permission may find the directory all the same.
		if session.ClassOf(err) != session.ClassNoAuth {
			return err
		}
		if there, _, failed := v.s.Exists(ctx, dir); failed != nil || !there {
			return errors.Join(err, failed)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claimsDirExists = true
	return nil
}

// takeTx returns the transaction that removes an unclaimed message. It fails if a claim
// exists.
func (v *queueView) takeTx(r messageRef, version int32) commit.Tx {
	// ZooKeeper has no check that a znode does not exist. A creation is such a check, and
	// the deletion right after it leaves no claim behind.
	item, name := v.path(r), v.claimPath(r)
	return commit.Tx{
		Ops: []any{
			&zk.CreateRequest{Path: name, Flags: zk.FlagPersistent},
			&zk.DeleteRequest{Path: name, Version: -1},
			&zk.DeleteRequest{Path: item, Version: version},
		},
		Size: 2*len(name) + len(item) + 100,
	}
}
