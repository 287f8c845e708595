package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A request is what a call is made from, once for every time it is sent.
type request struct {
	op       int32
	size     int // of what fill appends, in bytes
	fill     func([]byte) []byte
	answered func(*call) // see call
	late     func(*call) // the outcome, if the caller has gone; may be nil
}

// try sends a request once and waits for its answer. It fails with
// ErrConnectionLost when there was none, and otherwise only if the request was
// never sent or the caller's ctx or the session has ended; then late learns
// what came of it.
func (s *Session) try(ctx context.Context, r *request) (*call, error) {
	if size := headerSize + r.size; size > s.m.cfg.maxRequest {
		return nil, fmt.Errorf("%w: %d bytes, where %d are allowed (jute.maxbuffer of the servers; see WithMaxRequest)", ErrTooLarge, size, s.m.cfg.maxRequest)
	}
	for {
		w, err := s.enter(ctx, false)
		if err != nil {
			return nil, err
		}
		c := &call{op: r.op, done: make(chan struct{}), answered: r.answered}
		w.send(c, r.fill)
		var stop error
		select {
		case <-c.done:
		case <-ctx.Done():
			stop = cancelled(ctx)
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

// abandon leaves a call to itself. It reports false, and the caller is to go
// on with the outcome, where that has come after all.
func (s *Session) abandon(c *call, late func(*call)) bool {
	s.mu.Lock()
	s.abandoned++
	s.mu.Unlock()
	settled := func() {
		s.mu.Lock()
		if s.abandoned--; s.abandoned == maxAbandoned-1 {
			s.wakeLocked()
		}
		s.mu.Unlock()
	}
	if c.abandon(func(c *call) {
		if late != nil && c.err != errUnsent {
			late(c)
		}
		settled()
		s.leave()
	}) {
		return true
	}
	settled()
	return false
}

// repeat is try for a request that may be sent again when its connection
// breaks. lost says whether that has happened, so that an answer that looks like
// a failure may be the echo of the first attempt's success.
func (s *Session) repeat(ctx context.Context, r *request) (c *call, lost bool, err error) {
	for round := 0; ; round++ {
		c, err = s.try(ctx, r)
		if !errors.Is(err, ErrConnectionLost) {
			return c, lost, err
		}
		lost = true
		if err := s.pause(ctx, round); err != nil {
			return nil, lost, err
		}
	}
}

// pause waits before a request is sent again: not the first times, because the
// way to a new connection has pauses of its own, but for longer and longer if
// it is this very request that costs us the connection.
func (s *Session) pause(ctx context.Context, round int) error {
	if round < 2 {
		return nil
	}
	t := time.NewTimer(s.m.jitter.spread(backoff(round-1, firstBackoff, maxBackoff)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return cancelled(ctx)
	case <-s.dead:
		return s.why
	}
}
