package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A requester sends the requests of a session's callers, over as many connections as
// necessary.
type requester struct {
	m      *shared
	gate   *gate
	leases *leases
}

// try sends a request and waits for its answer, and sends the request again if the server
// has refused it for a transient reason. An error of class ConnectionLost means that the
// request may or may not have been carried out. If ctx or the session ends, r.Late gets
// the outcome.
func (q *requester) try(ctx context.Context, r *wire.Request) (*wire.Call, error) {
	c, err := q.send(ctx, r, 0)
	if err == nil && classOfCall(c) == ClassTransient {
		c, err = q.persist(ctx, r, c)
	}
	return answerOf(c, err)
}

// once sends a request once, over the connection conn or, if conn is 0, any. A refusal for a
// transient reason is the answer.
func (q *requester) once(ctx context.Context, r *wire.Request, conn uint64) (*wire.Call, error) {
	return answerOf(q.send(ctx, r, conn))
}

// answerOf returns an error if the answer to a request does not show whether it was carried out.
func answerOf(c *wire.Call, err error) (*wire.Call, error) {
	// For example a request that timed out on the server: the answer does not show whether
	// the request was carried out.
	if err == nil && classOfCall(c) == ClassConnectionLost {
		return nil, errorOfCode(c.MultiCode())
	}
	return c, err
}

// persist sends a request again until the server no longer refuses it for a transient
// reason. c is the first refusal.
func (q *requester) persist(ctx context.Context, r *wire.Request, c *wire.Call) (*wire.Call, error) {
	f := newFailures(ctx, q.m, wire.OpName(r.Op), q.m.strip(r.Path), "a request")
	for round := 1; ; round++ {
		f.note(errorOfCode(c.MultiCode()))
		err := q.backoff(ctx, round)
		if err == nil {
			c, err = q.send(ctx, r, 0)
		}
		if err != nil || classOfCall(c) != ClassTransient {
			return c, f.end(ctx, err)
		}
	}
}

// send sends a request and waits for its answer, even if the answer is a refusal. If conn is not 0,
// the request is not sent over another connection.
func (q *requester) send(ctx context.Context, r *wire.Request, conn uint64) (*wire.Call, error) {
	if r.Invalid != nil {
		return nil, r.Invalid
	}
	// A server closes the connection on a frame above its limit, which would break the
	// requests of other callers.
	if err := q.m.records.checkSize(len(r.Record)); err != nil {
		return nil, err
	}
	for {
		w, err := q.gate.enter(ctx, false)
		if err != nil {
			return nil, err
		}
		if conn != 0 && w.Number != conn {
			q.gate.leave()
			return nil, errOtherConnection
		}
		c := w.Send(r)
		if r.Follow != nil {
			r.Follow(w, c)
		}
		var stop error
		gone := ctx.Done()
		if r.Awaited {
			gone = nil
		}
		select {
		case <-c.Done():
		case <-gone:
			stop = CancelledWaiting(ctx, fmt.Errorf("no answer from %s for %v", w.Server, roundTime(time.Since(c.Sent))))
		case <-q.gate.over.Done():
			stop = context.Cause(q.gate.over)
		}
		// An answer that has arrived counts, although ctx has ended: the caller must learn
		// of a znode that it has created. A call that was abandoned leaves the gate with
		// its outcome, so Close waits for it.
		if stop != nil && q.abandon(c) {
			return nil, stop
		}
		q.gate.leave()
		switch c.Err {
		case nil:
			return c, nil
		case wire.ErrUnsent:
			// The connection ended before it took the request, so another connection may
			// carry it.
			continue
		}
		// If the session has ended, no connection follows that could tell the outcome.
		select {
		case <-q.gate.over.Done():
			return nil, context.Cause(q.gate.over)
		default:
			return nil, c.Err
		}
	}
}

// abandon lets a call finish without its caller. It returns false if the outcome has
// arrived: the caller must then use the outcome.
func (q *requester) abandon(c *wire.Call) bool {
	// Before Abandon: the answer may arrive, and settle the count, while Abandon
	// returns.
	q.gate.countAbandoned()
	if c.Abandon(func(c *wire.Call) {
		if c.Late != nil {
			c.Late(c)
		}
		q.gate.settleAbandoned()
		q.gate.leave()
	}) {
		return true
	}
	q.gate.settleAbandoned()
	return false
}

// repeat is like try, for a request that may be sent again when its answer is lost. lost
// reports whether an answer was lost: a refusal may then be the consequence of the first
// attempt's success. A request whose answer breaks its connection again and again ends
// with ErrAnswerTooLarge, ErrAnswerTooSlow or ErrConnectionLost.
func (q *requester) repeat(ctx context.Context, r *wire.Request) (c *wire.Call, lost bool, err error) {
	guilty := 0
	var f *failures
	defer func() { err = f.end(ctx, err) }()
	for round := 0; ; round++ {
		c, err = q.try(ctx, r)
		if ClassOf(err) != ClassConnectionLost {
			return c, lost, err
		}
		lost = true
		f = f.orNew(ctx, q.m, wire.OpName(r.Op), q.m.strip(r.Path))
		f.note(err)
		if g := guilt(err); g > 0 {
			if guilty += g; guilty >= maxGuilt {
				// The outcome of a write is unknown, so a write keeps ErrConnectionLost.
				if last, ok := err.(*wire.LostAnswer); ok && r.Reads() {
					err = last.Reason
				}
				return nil, lost, err
			}
			if err := sleep(ctx, q.guiltPause(), q.gate.over); err != nil {
				return nil, lost, err
			}
		}
		if err := q.pause(ctx, round); err != nil {
			return nil, lost, err
		}
	}
}

// write sends a write, and repeats it over lost connections only if it carries a version.
func (q *requester) write(ctx context.Context, r *wire.Request, version int32) (*wire.Call, error) {
	// Without a version a repetition could undo a change that another client has made since
	// the first attempt. With a version it can strike only a new znode of the same path that
	// has the same version: no request of ZooKeeper checks a czxid.
	if version < 0 {
		c, err := q.try(ctx, r)
		return c, q.m.failure(c, err)
	}
	c, lost, err := q.repeat(ctx, r)
	err = q.m.failure(c, err)
	if class := ClassOf(err); lost && (class == ClassBadVersion || class == ClassNoNode) {
		// Either the first attempt succeeded, or another client changed the znode
		// meanwhile.
		err = fmt.Errorf("%w (repeated: %w)", ErrConnectionLost, err)
	}
	return c, err
}

// guiltPause returns the pause after a request has broken its connection.
func (q *requester) guiltPause() time.Duration {
	// In this time other requests, and the transaction that proves the session alive, go
	// first on the next connection.
	return q.m.jitter.spread(min(q.leases.timeout()/4, maxBackoff))
}

// pause implements Session.Pause.
func (q *requester) pause(ctx context.Context, round int) error {
	// A reconnect has its own pauses, so the first rounds need none. The later rounds need
	// pauses if the attempt itself breaks the connection, or the answers contradict each
	// other.
	if round >= 2 {
		return q.backoff(ctx, round-1)
	}
	if ctx.Err() != nil {
		return Cancelled(ctx)
	}
	return context.Cause(q.gate.over)
}

// backoff waits after round failed attempts.
func (q *requester) backoff(ctx context.Context, round int) error {
	return sleep(ctx, q.m.jitter.backoff(round), q.gate.over)
}
