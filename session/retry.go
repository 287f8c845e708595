package session

import (
	"context"
	"errors"
	"time"
)

// Do calls fn with a live session, and again whenever it fails with
// ErrConnectionLost or ErrLost, or because its context ended with the session. fn
// must be repeatable. Do waits before it calls fn again: not before the second
// call, and then for longer and longer, with jitter. fn's context ends with ctx and
// with the session.
//
// Do returns any other result of fn as it is. It fails with ErrClosed when the
// Manager is closed, and with the error of ctx when ctx ends; both are joined with
// fn's last error, or with the error of the session if fn's context had ended with the
// session. Manager.Close waits for fn while the session is proven alive.
func (m *Manager) Do(ctx context.Context, fn func(context.Context, *Session) error) error {
	return m.Retry(ctx, func(s *Session) error { return run(ctx, s, fn) })
}

// Retry is Do for primitives that are built on this package: fn goes by its
// caller's context, and Close does not wait for fn.
func (m *Manager) Retry(ctx context.Context, fn func(*Session) error) error {
	var last error
	for round := 0; ; round++ {
		if round > 1 {
			if err := sleep(ctx, m.jitter.backoff(round-1), m.ctx); err != nil {
				return joined(err, last)
			}
		}
		s, err := m.Session(ctx)
		if err != nil {
			return joined(err, last)
		}
		began := time.Now()
		if last = fn(s); !another(ctx, s, last) {
			return last
		}
		if ClassOf(last) == ClassCancelled {
			// A context of this session has ended, and ctx has not. A caller must not
			// take the one for the other.
			last = s.Err()
		}
		if time.Since(began) > maxBackoff {
			round = 0
		}
	}
}

// joined adds the last error of a function to the error that ended its repetition,
// unless both say that the Manager was closed.
func joined(err, last error) error {
	if last == nil || ClassOf(err) == ClassClosed && ClassOf(last) == ClassClosed {
		return err
	}
	return errors.Join(err, last)
}

// another reports whether a function that returned err should be called again. If
// ctx has ended, Session says so before that.
func another(ctx context.Context, s *Session, err error) bool {
	class := ClassOf(err)
	if class == ClassCancelled {
		// A context that is derived from ctx may have ended with the session.
		return ctx.Err() == nil && s.Err() != nil
	}
	return class.Again()
}

func run(ctx context.Context, s *Session, fn func(context.Context, *Session) error) error {
	done, err := s.Busy()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.hold, func() { cancel(s.Err()) })()
	return fn(ctx, s)
}
