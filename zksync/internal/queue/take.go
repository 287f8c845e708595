package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// Take removes and returns the first message that no consumer has claimed. If patient, it
// waits for a message; otherwise it reports false if there was none at the time of the
// call. With an ErrUnknown it returns the data, too.
func (c *Consumer) Take(ctx context.Context, patient bool) (data []byte, ok bool, err error) {
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
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	removing, cancelRemoving := context.WithCancelCause(ctx)
	defer cancelRemoving(nil)
	defer context.AfterFunc(c.cleanupCtx, func() { cancelRemoving(ErrClosed) })()
	t := &take{c: c, caller: caller, removing: removing, patient: patient}
	defer func() { t.wait.Stop() }()
	var outcome error
	err = c.cfg.Manager.Do(caller, func(ctx context.Context, s *session.Session) error {
		t.v = c.viewOf(s)
		t.line, t.took, t.refused = newIdleLine(t.v), 0, 0
		defer t.line.leave()
		if data, ok, outcome = t.run(ctx); ok {
			// Even if the outcome is unknown, Do must not call this function again: it would
			// take a second message, and the first one would be lost.
			return nil
		}
		return outcome
	})
	switch {
	case ok:
		return data, true, outcome
	case err != nil && c.ctx.Err() != nil && ctx.Err() == nil:
		err = ErrClosed
	}
	return nil, false, err
}

// none is the quota of a wait for messages.
func none(int, int) int { return 0 }

// A take is one Take. One goroutine uses it.
type take struct {
	c        *Consumer
	caller   context.Context // ends with the ctx of the Take, and when Close begins
	removing context.Context // limits the wait for a removal that was sent
	patient  bool
	wait     *session.Wait // nil until there was nothing to take

	// Under the present session:
	v       *view
	line    *idleLine
	took    time.Duration // for a request
	refused int           // attempts that failed because other consumers were faster
	watches bool          // it holds view.watching
}

// run takes a message. ctx ends with the session, with the caller, and when Close begins.
func (t *take) run(ctx context.Context) ([]byte, bool, error) {
	v := t.v
	// TryTake reports that there is no message only after a look behind a commit, and
	// needs one such look. Take waits for an event instead.
	looked := t.patient
	var wait func(context.Context) error
	if t.patient {
		wait = t.startWatching
	}
	var last string         // the message of the last attempt
	var hastened orderState // the last state after which a recovery did not wait
	for again := 0; ; {
		if err := t.prepare(ctx, again); err != nil {
			return nil, false, err
		}
		if !looked && !v.partitions.hasFree() {
			if err := v.invalidate(ctx); err != nil {
				return nil, false, err
			}
			looked = true
		}
		sel, err := v.next(ctx, nil, wait, false)
		t.stopWatching()
		err = t.withReason(err)
		if err != nil || len(sel.refs) == 0 && looked && !v.order.hastenRecovery(&hastened) {
			return nil, false, err
		}
		if len(sel.refs) == 0 {
			continue
		}
		r := sel.refs[0]
		if again++; r.path() != last {
			last, again = r.path(), 0
		}
		began := time.Now()
		data, done, err := t.remove(ctx, sel.reading, sel.at)
		t.took = time.Since(began) / 2 // a read and a removal
		if !done {
			err = t.withReason(err)
		}
		if done || err != nil {
			return data, done, err
		}
	}
}

// maxReadAge bounds the time from the read of a message to its removal. In a longer time a directory
// may be emptied, deleted and created again.
const maxReadAge = 10 * time.Second

// isOld reports whether a message that was read at a time, over the connection conn, may be another one by now.
func (t *take) isOld(r messageRef, read time.Time, conn uint64) bool {
	s := t.v.s
	// A session may have connections with longer round trips: a connection that is silent for a quarter
	// of the timeout is closed. The event of a directory that was deleted during a disconnection comes a
	// little after the next connection.
	return time.Since(read) > max(maxReadAge, s.Timeout()/2) || s.Connection() != conn || r.partition.mayBeRecreated()
}

// remove removes a picked message. It reports false without an error if the caller has
// to look for another message.
func (t *take) remove(ctx context.Context, rd *reading, st *orderState) ([]byte, bool, error) {
	v, r, followed := t.v, rd.ref, false
	defer func() {
		if !followed {
			v.partitions.endReading(rd)
		}
	}()
	// Read before the removal, whose answer has no data. The version in the transaction
	// makes sure that the removed message has this data.
	began, conn := time.Now(), v.s.Connection()
	data, stat, err := v.readMessage(ctx, r)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		v.partitions.forgetMissing(r)
		if st.consumers > 0 {
			// A consumer may have claimed and removed the message, and claimed others.
			v.order.forget(st)
			t.refused++
		}
		return nil, false, nil
	case isUnreadable(err):
		v.skip(r, err)
		return nil, false, nil
	case err != nil:
		v.partitions.requeue(r)
		return nil, false, err
	}
	path := r.path()
	tx := commit.Tx{
		Ops: []any{
			&zk.CheckVersionRequest{Path: st.path, Version: st.version}, // no message was claimed since the state was read
			&zk.DeleteRequest{Path: path, Version: stat.Version},
		},
		Size:  len(st.path) + len(path) + 60,
		Stale: func() bool { return t.isOld(r, began, conn) },
	}
	// The transaction relies on no ephemeral of this session, so it may be sent again, and
	// its outcome may be looked up, under another session.
	e, err := v.partitions.send(ctx, rd, tx, t.startWait)
	if e == nil {
		v.partitions.requeue(r)
		return nil, false, err
	}
	gone := true
	err = e.Wait(t.removing)
	unclear := commit.IsUnknown(err)
	// The marker was removed by another client, so that it does not tell the outcome.
	// The message itself may tell.
	if unclear && t.removing.Err() == nil {
		gone, err = t.outcome(path, stat.Czxid, err)
	}
	if unclear && gone && t.removing.Err() != nil {
		delivered := t.c.removing.has(r.message, stat.Czxid) // before follow, which may end it
		followed = true
		t.follow(rd, stat.Czxid)
		if delivered {
			return nil, false, t.cancelled(err) // see below
		}
		return data, true, err
	}
	class := session.ClassOf(err)
	switch {
	case !gone:
		v.partitions.requeue(r)
	case err == nil, unclear:
		if unclear {
			v.partitions.requeue(r) // it may be there: if not, the next read finds that out
		} else {
			v.partitions.forget(r)
		}
		if t.c.removing.has(r.message, stat.Czxid) {
			// Chan has delivered this message, and failed to remove it. It must not be
			// delivered again.
			if !unclear {
				t.c.removing.end(r.message)
			}
			return nil, false, nil
		}
		return data, true, err
	case class == session.ClassNotEmpty:
		v.skip(r, err)
	case class == session.ClassNoNode, class == session.ClassBadVersion, err == commit.ErrStale:
		// The message has gone or its data has changed, or a consumer has claimed messages
		// since the order znode was read.
		v.order.forget(st)
		v.partitions.requeue(r)
		if class != session.ClassNoNode {
			t.refused++
		}
	default:
		v.partitions.requeue(r)
		return nil, false, err
	}
	return nil, false, nil
}

// maxLooks is the number of looks for a message that end with internal errors of servers, after
// which the outcome of its removal stays unknown.
const maxLooks = 5

// outcome reports whether a message is gone after its removal failed with why, an error
// that leaves the outcome unknown. The removal cannot happen any more. If outcome cannot
// find out, it returns true and why.
func (t *take) outcome(path string, czxid int64, why error) (gone bool, err error) {
	err = t.v.cfg.Manager.Do(t.removing, func(ctx context.Context, s *session.Session) error {
		// The failure of a look, unlike the failure of the removal, shows nothing.
		for looks := 1; ; looks++ {
			var err error
			if gone, err = isGone(ctx, s, path, czxid); session.ClassOf(err) != session.ClassUnknown || looks == maxLooks {
				return err
			}
			if err := s.Pause(ctx, looks-1); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return true, errors.Join(why, err)
	}
	return gone, why
}

// isGone reports whether a message does not exist any more.
func isGone(ctx context.Context, s *session.Session, path string, czxid int64) (bool, error) {
	// A deposed leader would show a message whose removal its successor has committed.
	if err := s.SyncQuorum(ctx, path); err != nil {
		return false, err
	}
	_, stat, err := s.Get(ctx, path)
	if session.ClassOf(err) == session.ClassNoNode {
		return true, nil
	}
	return err == nil && stat.Czxid != czxid, err // another znode of the same name
}

// follow waits in the background for a removal whose caller has gone. If the
// removal fails, it requeues the message.
func (t *take) follow(rd *reading, czxid int64) {
	v, r := t.v, rd.ref
	follow := func() {
		defer v.partitions.endReading(rd)
		if rd.entry.Wait(v.life.cleanupCtx) == nil {
			if t.c.removing.has(r.message, czxid) {
				t.c.removing.end(r.message)
			}
			v.partitions.forget(r)
		} else {
			v.partitions.requeue(r) // if the message is gone, the next read finds that out
		}
	}
	// After Close has begun, no goroutine is started: then the Take itself waits, and
	// Close waits for the Take.
	if !v.life.spawn(follow) {
		follow()
	}
}
