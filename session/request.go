package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A request is what a call is made from, once for every time it is sent.
type request struct {
	op       int32
	path     string   // as the server knows it; empty for several
	parts    []target // of a transaction
	size     int      // of what fill appends, in bytes
	fill     func([]byte) []byte
	answered func(*call) // see call
	late     func(*call) // the outcome, if the caller has gone; may be nil
}

// A target is what one operation of a transaction is about.
type target struct {
	op   int32
	path string // as the server knows it
}

// try sends a request and waits for its answer. A request that the server has not
// carried out for a transient reason is sent again, after a pause. try fails with
// an error of class ConnectionLost if the request may or may not have been carried
// out, and otherwise only if the request was not, or if ctx or the session ended;
// then late learns the outcome.
func (s *Session) try(ctx context.Context, r *request) (*call, error) {
	if err := s.checkSize(r.size); err != nil {
		return nil, err
	}
	c, err := s.send(ctx, r)
	if err == nil && classOfCall(c) == ClassTransient {
		c, err = s.persist(ctx, r, c)
	}
	if err == nil && classOfCall(c) == ClassConnectionLost {
		return nil, errorOfCode(c.multiCode())
	}
	return c, err
}

// persist sends a request again until the server does not refuse it for a transient
// reason. c is the first refusal.
func (s *Session) persist(ctx context.Context, r *request, c *call) (*call, error) {
	var refusals atomic.Int32
	last := errorOfCode(c.multiCode())
	wait := s.m.StartWait(opNames[r.op], s.m.strip(r.path), func(context.Context) error {
		return fmt.Errorf("for a request that the server has refused %d times: %w", refusals.Load(), last)
	})
	defer wait.Stop()
	for {
		round := int(refusals.Add(1))
		if err := s.backoff(ctx, round); err != nil {
			if ClassOf(err) == ClassCancelled {
				err = wait.Cancelled(ctx)
			}
			return nil, err
		}
		c, err := s.send(ctx, r)
		if err != nil || classOfCall(c) != ClassTransient {
			return c, err
		}
	}
}

// send is try without a look at the answer.
func (s *Session) send(ctx context.Context, r *request) (*call, error) {
	for {
		w, err := s.enter(ctx, false)
		if err != nil {
			return nil, err
		}
		c := &call{op: r.op, of: r, done: make(chan struct{}), answered: r.answered}
		w.send(c, r.fill)
		var stop error
		select {
		case <-c.done:
		case <-ctx.Done():
			stop = CancelledWaiting(ctx, fmt.Errorf("no answer from %s for %v", w.server, roundTime(time.Since(c.sent))))
		case <-s.dead:
			stop = s.why
		}
		if stop != nil && s.abandon(c, r.late) {
			return nil, stop
		}
		s.leave()
		switch c.err {
		case nil:
			return c, nil
		case errUnsent:
			continue
		}
		select {
		case <-s.dead:
			return nil, s.why
		default:
			return nil, c.err
		}
	}
}

// checkSize fails for a request whose record is longer than the servers take.
func (s *Session) checkSize(record int) error {
	if size := headerSize + record; size > s.m.cfg.maxRequest {
		return fmt.Errorf("%w: %d bytes, where %d are allowed (jute.maxbuffer of the servers; see WithMaxRequest)", ErrTooLarge, size, s.m.cfg.maxRequest)
	}
	return nil
}

// abandon leaves a call to itself. It reports false, and the caller is to go
// on with the outcome, where that has come after all.
func (s *Session) abandon(c *call, late func(*call)) bool {
	s.countAbandoned()
	if c.abandon(func(c *call) {
		if late != nil && c.err != errUnsent {
			late(c)
		}
		s.settleAbandoned()
		s.leave()
	}) {
		return true
	}
	s.settleAbandoned()
	return false
}

// countAbandoned counts a request whose caller has gone, until settleAbandoned.
func (s *Session) countAbandoned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned++
}

func (s *Session) settleAbandoned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned--; s.abandoned == maxAbandoned-1 {
		s.wakeLocked()
	}
}

// repeat is try for a request that may be sent again when its answer is lost. lost
// reports whether that has happened: an answer that looks like a failure may then
// be the echo of the first attempt's success. A request whose answer breaks its
// connection again and again ends with the reason: ErrAnswerTooLarge or
// ErrAnswerTooSlow for a read, and ErrConnectionLost for a write, whose outcome is
// not known.
func (s *Session) repeat(ctx context.Context, r *request) (c *call, lost bool, err error) {
	guilty := 0
	for round := 0; ; round++ {
		c, err = s.try(ctx, r)
		if ClassOf(err) != ClassConnectionLost {
			return c, lost, err
		}
		lost = true
		if g := guilt(err); g > 0 {
			if guilty += g; guilty >= maxGuilt {
				return nil, lost, r.giveUp(err)
			}
			if err := s.wait(ctx, s.m.jitter.spread(s.guiltPause())); err != nil {
				return nil, lost, err
			}
		}
		if err := s.Pause(ctx, round); err != nil {
			return nil, lost, err
		}
	}
}

// giveUp returns the error of a request with the last failure err that is not
// repeated any more.
func (r *request) giveUp(err error) error {
	if last, ok := err.(*lostAnswer); ok && r.reads() {
		return last.reason
	}
	return err
}

// guiltPause is about how long a request that has broken its connection stays away
// from the next one. Others, and the transaction that proves the session alive, come
// first there.
func (s *Session) guiltPause() time.Duration { return min(s.Timeout()/4, maxBackoff) }

// Pause waits before an attempt is repeated that failed because of something other
// than load, and returns at once in the rounds 0 and 1: the way to a new connection
// has pauses of its own. Later pauses grow to a second, with jitter, in case that
// the attempt itself breaks the connection, or that the answers contradict each
// other. It fails when ctx or the session ends.
func (s *Session) Pause(ctx context.Context, round int) error {
	if round >= 2 {
		return s.backoff(ctx, round-1)
	}
	if ctx.Err() != nil {
		return Cancelled(ctx)
	}
	return nil
}

// backoff waits before the attempt after round failed ones.
func (s *Session) backoff(ctx context.Context, round int) error {
	return s.wait(ctx, s.m.jitter.spread(backoff(round, firstBackoff, maxBackoff)))
}

// wait returns after d, or with an error when ctx or the session ends.
func (s *Session) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return Cancelled(ctx)
	case <-s.dead:
		return s.why
	}
}
