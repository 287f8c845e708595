package commit

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

const (
	maxBatch     = 128
	maxBatchSize = 512 << 10

	// maxRepairs is the number of repairs without an outcome. A repair creates a znode
	// that the request needs.
	maxRepairs = 16
)

// errSkipped is the outcome of an entry that relies on no read, if an entry that has to happen before has failed.
var errSkipped = errors.New("zksync: not sent, because an earlier transaction failed")

// A sender sends the requests of a Committer, one at a time. The run of the Committer
// uses it.
type sender struct {
	c       *Committer
	marker  marker
	sent    []*Entry // of the last request, while its outcome is not known
	limit   int      // the most entries of the next request
	served  int      // the number of entries of the last request
	repairs int      // since an entry got its outcome
	undone  int      // the number of requests that a fence found undone, or a server throttled, since an entry got its outcome
}

// carryOut sends one request, repeats it until its outcome is known, and acts on the
// outcome. ctx ends when no caller waits.
func (r *sender) carryOut(ctx context.Context) {
	c := r.c
	err := c.m.Do(ctx, r.send)
	switch {
	case err == nil:
	case len(r.sent) > 0:
		// The request cannot be repeated. The fence is not under ctx: even without a caller, the
		// outcome must be known before the next request relies on the version of the marker.
		if failed := c.m.Do(c.life, r.fence); failed != nil {
			r.retireMarker(failed)
			r.finish(r.sent, unknown(errors.Join(err, failed)))
		}
	case ctx.Err() != nil && c.life.Err() == nil:
		// All callers have left, and entries that were started since have had no attempt.
	default:
		// No entry was sent, and each of them would fail in the same way.
		c.mu.Lock()
		defer c.mu.Unlock()
		c.withdrawLocked(err, c.entries...)
	}
}

// send sends the next request. It returns nil if entries have made progress, and
// otherwise an error for Manager.Do.
func (r *sender) send(ctx context.Context, s *session.Session) error {
	c := r.c
	again := len(r.sent) > 0
	if again && slices.ContainsFunc(r.sent, reliesOnRead) {
		// Meanwhile another client may have taken the message, and another message may
		// have its name in a directory that was created again. So the caller must read
		// again.
		return r.fence(ctx, s)
	}
	if !again {
		// A server that answers each transaction with an internal error refuses no entry for good, and
		// a fence queues all of them again.
		if err := s.Pause(ctx, r.undone); err != nil {
			return err
		}
		if err := r.marker.ensure(ctx, s); err != nil {
			return err
		}
	}
	first, room, err := c.Gate.Admit(ctx, s)
	if err != nil {
		return err
	}
	// Before prepare asks Stale: if the request waited for another connection after that, the read
	// might not be true any more.
	conn := s.Connection()
	if !again { // an open request is repeated as it was
		r.prepare(room, conn)
	}
	entries := r.sent
	if len(entries) == 0 {
		return nil
	}
	// The marker comes first: if another operation is refused, the marker had the expected
	// version.
	ops := append(make([]any, 0, 1+len(first)+len(entries)*len(entries[0].Ops)), r.marker.bump())
	ops = append(ops, first...)
	for _, e := range entries {
		ops = append(ops, e.Ops...)
	}
	results, err := r.transact(s, conn, ops)
	at := session.FailedOp(results)
	switch {
	case err == nil:
		r.marker.version++
		c.Gate.Passed(len(entries))
		r.finish(entries, nil)
		return nil
	case session.ClassOf(err) == session.ClassTransient && at < 0:
		// A request that relies on a read was throttled, or its connection has ended. The read may
		// not be true any more.
		r.undone++
		r.markUnsent(ErrStale)
		return nil
	case session.ClassOf(err) == session.ClassTooLarge && !again:
		// The session refuses such a request before it sends it.
		r.markUnsent(nil)
		if r.limit = len(entries) / 2; r.limit == 0 {
			r.finish(entries, err)
		}
		return nil
	case at < 0:
		return err
	case again:
		// If the marker had another version, an earlier request has happened, or another
		// client has written. If the marker had the expected version, no earlier request
		// has happened, but one of them may still be on its way under an earlier session.
		return r.fence(ctx, s)
	}
	r.markUnsent(nil)
	if at == 0 {
		return r.markerRefused(err)
	}
	if at -= 1 + len(first); at < 0 {
		return c.Gate.Refused(err)
	}
	for i, e := range entries {
		if at -= len(e.Ops); at < 0 {
			return r.entryRefused(ctx, s, e, i, err)
		}
	}
	return err
}

// reliesOnRead reports whether an entry must not be sent again without another read.
func reliesOnRead(e *Entry) bool { return e.Stale != nil }

// transact carries out the operations of a request. If an entry relies on a read, it sends the
// request once, over the connection conn. ClassTransient means that nothing has happened then.
func (r *sender) transact(s *session.Session, conn uint64, ops []any) ([]zk.MultiResponse, error) {
	// A request that was sent is not cancelled with its callers: its answer is the
	// shortest way to its outcome.
	if slices.ContainsFunc(r.sent, reliesOnRead) {
		return s.MultiOnce(r.c.life, conn, ops...)
	}
	return s.Multi(r.c.life, ops...)
}

// prepare chooses the entries of the next request, as many as there is room for. conn is the
// number of the connection, 0 if there is none.
func (r *sender) prepare(room int, conn uint64) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.entries) > 0 && c.entries[0].finished {
		// The array lives on, and must not keep the data of the message.
		c.entries[0] = nil
		c.entries = c.entries[1:]
	}
	size := 0
	for _, e := range c.entries {
		failed := e.After != nil && e.After.finished && e.After.err != nil
		switch {
		case e.finished:
			continue
		case e.Stale != nil && (failed || conn == 0 || e.Stale()):
			e.finishLocked(ErrStale)
			continue
		case failed:
			e.finishLocked(errSkipped)
			continue
		}
		size += e.Size
		// The first entry goes out whatever its size: only send learns that it is too large.
		if len(r.sent) == min(room, r.limit) || len(r.sent) > 0 && size > maxBatchSize {
			break
		}
		e.sent = true
		r.sent = append(r.sent, e)
	}
	r.served = len(r.sent)
}

// finish sets the outcome of entries.
func (r *sender) finish(entries []*Entry, err error) {
	r.c.mu.Lock()
	finished := slices.DeleteFunc(entries, func(e *Entry) bool { return !e.setLocked(err) })
	r.c.mu.Unlock()
	r.sent, r.limit, r.repairs, r.undone = nil, maxBatch, 0, 0
	// c.mu is not held: callers that wake up ask for it at once.
	for _, e := range finished {
		close(e.done)
	}
}

// markUnsent notes that the last request has not happened, and never will. Entries that
// rely on a read end with the error stale, if it is not nil, and are queued otherwise.
func (r *sender) markUnsent(stale error) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for _, e := range r.sent {
		e.sent = false
		switch {
		case e.withdrawn != nil:
			// The caller has gone, its limit is over, or the Committer closes.
			e.finishLocked(e.withdrawn)
		case stale != nil && e.Stale != nil:
			e.finishLocked(stale)
		}
	}
	r.sent = nil
}

// fence makes sure that the last request, if it has not happened by now, never happens,
// and acts on its outcome.
func (r *sender) fence(ctx context.Context, s *session.Session) error {
	happened, err := r.marker.fence(ctx, s)
	switch {
	case IsUnknown(err):
		r.retireMarker(err)
		r.finish(r.sent, err)
	case err != nil:
		return err
	case happened:
		r.c.Gate.Passed(len(r.sent))
		r.finish(r.sent, nil)
	default:
		r.undone++
		r.markUnsent(ErrStale)
	}
	return nil
}
