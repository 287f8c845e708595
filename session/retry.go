package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Do calls fn with a live session. Do calls fn again if fn fails with ErrConnectionLost,
// ErrLost, ErrStale or another error of a class with Again, or because its context ended with
// the session, so fn must be repeatable.
// The second call follows at once. Before later calls Do waits for increasing times, with
// jitter. fn's context ends with ctx and with the session.
//
// Do returns any other result of fn unchanged. Do returns ErrClosed when the Manager is
// closed, joined with fn's last error, or with the error of the session if fn's context had
// ended with the session. Do returns the error of ctx when ctx ends. Its text has that last error,
// which errors.Is does not find: fn may yet have succeeded under another session. Manager.Close
// waits for fn as long as Close says.
func (m *Manager) Do(ctx context.Context, fn func(context.Context, *Session) error) error {
	return m.Retry(ctx, func(s *Session) error { return run(ctx, s, fn) })
}

// Retry is like Do, for primitives that build on this package. fn uses its caller's
// context, and Close does not wait for fn.
func (m *Manager) Retry(ctx context.Context, fn func(*Session) error) error {
	var last error
	return m.Repeat(ctx, func() error {
		s, err := m.Session(ctx)
		if err != nil {
			return joined(ctx, err, last)
		}
		last = fn(s)
		if ClassOf(last) == ClassCancelled && ctx.Err() == nil && s.Err() != nil {
			// A context of this session has ended, and ctx has not. The caller must not take the end of
			// the one context for the end of the other. If neither has ended, fn has reported a
			// context of its own, which is its result.
			last = s.Err()
		}
		return last
	})
}

// Repeat calls fn until it returns nil or an error of a class without Again, with the pauses of Do,
// and otherwise returns as Do. It serves primitives whose function waits for its sessions itself, and
// so can bound that wait.
func (m *Manager) Repeat(ctx context.Context, fn func() error) error {
	var last error
	for round := 0; ; round++ {
		if round > 1 {
			if err := sleep(ctx, m.jitter.backoff(round-1), m.ctx); err != nil {
				return joined(ctx, err, last)
			}
		}
		began := time.Now()
		if last = fn(); !ClassOf(last).Again() {
			return last
		}
		// fn has worked for a while, so its failure does not belong to the failures
		// before it.
		if time.Since(began) > maxBackoff {
			round = 0
		}
	}
}

// joined adds the last error of a function to the error that ended its repetition, unless both
// report that the Manager was closed.
func joined(ctx context.Context, err, last error) error {
	switch {
	case last == nil || ClassOf(err) == ClassClosed && ClassOf(last) == ClassClosed:
		return err
	case ClassOf(err) != ClassCancelled:
		return errors.Join(err, last)
	}
	// As text only: a call that its ctx has ended must not match ErrLost, as if a hold of the caller
	// were lost.
	if reason := WaitReason(err); reason != nil {
		return CancelledWaiting(ctx, fmt.Errorf("%w; the last attempt: %v", reason, last))
	}
	return CancelledWaiting(ctx, fmt.Errorf("the last attempt: %v", last))
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
