package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A requester sends the requests of a session's callers, over however many connections
// they take.
type requester struct {
	m      *shared
	gate   *gate
	leases *leases
}

// try sends a request and waits for its answer. A request that the server has not
// carried out for a transient reason is sent again, after a pause. try fails with
// an error of class ConnectionLost if the request may or may not have been carried
// out, and otherwise only if the request was not, or if ctx or the session ended;
// then r.Late learns the outcome.
func (q *requester) try(ctx context.Context, r *wire.Request) (*wire.Call, error) {
	if err := q.m.records.checkSize(len(r.Record)); err != nil {
		return nil, err
	}
	c, err := q.send(ctx, r)
	if err == nil && classOfCall(c) == ClassTransient {
		c, err = q.persist(ctx, r, c)
	}
	if err == nil && classOfCall(c) == ClassConnectionLost {
		return nil, errorOfCode(c.MultiCode())
	}
	return c, err
}

// persist sends a request again until the server does not refuse it for a transient
// reason. c is the first refusal.
func (q *requester) persist(ctx context.Context, r *wire.Request, c *wire.Call) (*wire.Call, error) {
	var refusals atomic.Int32
	last := errorOfCode(c.MultiCode())
	wait := q.m.StartWait(wire.OpName(r.Op), q.m.strip(r.Path), func(context.Context) error {
		return fmt.Errorf("for a request that the server has refused %d times: %w", refusals.Load(), last)
	})
	defer wait.Stop()
	for {
		round := int(refusals.Add(1))
		if err := q.backoff(ctx, round); err != nil {
			if ClassOf(err) == ClassCancelled {
				err = wait.Cancelled(ctx)
			}
			return nil, err
		}
		c, err := q.send(ctx, r)
		if err != nil || classOfCall(c) != ClassTransient {
			return c, err
		}
	}
}

// send is try without a look at the answer.
func (q *requester) send(ctx context.Context, r *wire.Request) (*wire.Call, error) {
	for {
		w, err := q.gate.enter(ctx, false)
		if err != nil {
			return nil, err
		}
		c := w.Send(r)
		var stop error
		select {
		case <-c.Done():
		case <-ctx.Done():
			stop = CancelledWaiting(ctx, fmt.Errorf("no answer from %s for %v", w.Server, roundTime(time.Since(c.Sent))))
		case <-q.gate.over.Done():
			stop = context.Cause(q.gate.over)
		}
		if stop != nil && q.abandon(c) {
			return nil, stop
		}
		q.gate.leave()
		switch c.Err {
		case nil:
			return c, nil
		case wire.ErrUnsent:
			continue
		}
		select {
		case <-q.gate.over.Done():
			return nil, context.Cause(q.gate.over)
		default:
			return nil, c.Err
		}
	}
}

// abandon leaves a call to itself. It reports false, and the caller is to go
// on with the outcome, where that has come after all.
func (q *requester) abandon(c *wire.Call) bool {
	q.gate.countAbandoned()
	if c.Abandon(func(c *wire.Call) {
		if c.Late != nil && c.Err != wire.ErrUnsent {
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

// repeat is try for a request that may be sent again when its answer is lost. lost
// reports whether that has happened: an answer that looks like a failure may then
// be the echo of the first attempt's success. A request whose answer breaks its
// connection again and again ends with the reason: ErrAnswerTooLarge or
// ErrAnswerTooSlow for a read, and ErrConnectionLost for a write, whose outcome is
// not known.
func (q *requester) repeat(ctx context.Context, r *wire.Request) (c *wire.Call, lost bool, err error) {
	guilty := 0
	for round := 0; ; round++ {
		c, err = q.try(ctx, r)
		if ClassOf(err) != ClassConnectionLost {
			return c, lost, err
		}
		lost = true
		if g := guilt(err); g > 0 {
			if guilty += g; guilty >= maxGuilt {
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

// write sends a request that is safe to repeat only if it carries a version.
func (q *requester) write(ctx context.Context, r *wire.Request, version int32) (*wire.Call, error) {
	if version < 0 {
		c, err := q.try(ctx, r)
		if err == nil {
			err = q.m.failure(c)
		}
		return c, err
	}
	c, lost, err := q.repeat(ctx, r)
	if err != nil {
		return nil, err
	}
	err = q.m.failure(c)
	if class := ClassOf(err); lost && (class == ClassBadVersion || class == ClassNoNode) {
		// Either the first attempt has done it or somebody else got in between.
		err = fmt.Errorf("%w (repeated: %w)", ErrConnectionLost, err)
	}
	return c, err
}

// guiltPause is about how long a request that has broken its connection stays away
// from the next one. Others, and the transaction that proves the session alive, come
// first there.
func (q *requester) guiltPause() time.Duration {
	return q.m.jitter.spread(min(q.leases.timeout()/4, maxBackoff))
}

// pause is Session.Pause.
func (q *requester) pause(ctx context.Context, round int) error {
	if round >= 2 {
		return q.backoff(ctx, round-1)
	}
	if ctx.Err() != nil {
		return Cancelled(ctx)
	}
	return nil
}

// backoff waits before the attempt after round failed ones.
func (q *requester) backoff(ctx context.Context, round int) error {
	return sleep(ctx, q.m.jitter.backoff(round), q.gate.over)
}
