package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Do and Retry pause between calls, longer each time, and end with ctx and with the Manager: their error matches the error
// of ctx, and has the text of the last error of the function. To see this test fail, drop the pause of Retry.
func TestRetryDoesNotSpin(t *testing.T) {
	for _, says := range []error{session.ErrLost, session.ErrConnectionLost, session.ErrStale, fmt.Errorf("x: %w", session.ErrLost)} {
		for name, retry := range map[string]func(context.Context, *session.Manager, func() error) error{
			"Do": func(ctx context.Context, m *session.Manager, fn func() error) error {
				return m.Do(ctx, func(context.Context, *session.Session) error { return fn() })
			},
			"Retry": func(ctx context.Context, m *session.Manager, fn func() error) error {
				return m.Retry(ctx, func(*session.Session) error { return fn() })
			},
		} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				calls := 0
				fn := func() error { calls++; return says }
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := retry(ctx, m, fn)
				mustBe(t, err, context.DeadlineExceeded)
				// A call that its ctx has ended must not match ErrLost.
				if errors.Is(err, says) || !strings.Contains(err.Error(), says.Error()) {
					t.Errorf("%s: %v, want the text of %v in an error that does not match it", name, err, says)
				}
				if c := session.ClassOf(err); c != session.ClassCancelled {
					t.Errorf("%s: class %v of %v", name, c, err)
				}
				if calls < 30 || calls > 150 {
					t.Errorf("%s: %d calls in a minute, want about one a second", name, calls)
				}
				done := make(chan error, 1)
				go func() { done <- retry(t.Context(), m, fn) }()
				time.Sleep(time.Minute)
				within(t, 2*time.Second, "Close", func() { m.Close() })
				mustBe(t, <-done, session.ErrClosed)
			})
		}
	}
}

// A function that fails with the cause of its caller's context is not called again after that context has ended,
// regardless of the errors that the cause wraps.
func TestRetryLooksAtCtxFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		for _, like := range []error{session.ErrLost, session.ErrConnectionLost, zk.ErrNoNode} {
			cause := fmt.Errorf("a sibling: %w", like)
			ctx, cancel := context.WithCancelCause(t.Context())
			calls := 0
			err := m.Do(ctx, func(ctx context.Context, s *session.Session) error {
				calls++
				cancel(cause)
				<-ctx.Done()
				return context.Cause(ctx)
			})
			mustBe(t, err, cause)
			if calls != 1 {
				t.Errorf("%d calls, want 1", calls)
			}
		}
	})
}

// A function whose context ended with the session is called again, even if it returns only the error of that context.
func TestDoAfterTheEndOfTheSession(t *testing.T) {
	for name, result := range map[string]func(context.Context) error{
		"the error of ctx": context.Context.Err,
		"the cause of ctx": context.Cause,
		"a request": func(ctx context.Context) error {
			return session.Cancelled(ctx)
		},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := connect(t, srv, three)
			calls := 0
			err := m.Do(t.Context(), func(ctx context.Context, s *session.Session) error {
				if calls++; calls > 1 {
					return nil
				}
				if err := srv.ExpireSession(s.ID()); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return result(ctx)
			})
			if err != nil || calls != 2 {
				t.Errorf("%s: %v after %d calls, want success at the second", name, err, calls)
			}
		})
	}
}

// The pauses of Retry start again from the beginning after a function that has run for long, so that a session that
// is lost every hour delays nothing.
func TestRetryForgetsOldFailures(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		calls := 0
		var ended time.Time
		err := m.Retry(t.Context(), func(s *session.Session) error {
			if !ended.IsZero() {
				if waited := time.Since(ended); waited > 100*time.Millisecond {
					t.Errorf("call %d came %v after the one before", calls, waited)
				}
			}
			if calls++; calls == 20 {
				return nil
			}
			time.Sleep(time.Hour)
			ended = time.Now()
			return session.ErrLost
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Connect returns when its ctx ends, also while it closes the connection to a server that hangs, and leaves nothing
// behind.
func TestConnectReturnsWithItsContext(t *testing.T) {
	for _, trouble := range []string{"the handshake hangs", "the server is frozen", "nothing is reachable", "nothing is answered after the handshake"} {
		t.Run(trouble, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				switch trouble {
				case "the handshake hangs":
					srv.HangHandshake(true)
				case "the server is frozen":
					srv.Freeze()
				case "nothing is reachable":
					srv.Stop()
				default:
					srv.Inject(zkserver.Fault{Times: -1, Match: func(op zkserver.Op) bool { return op.Code != zkserver.OpConnect }, Do: zkserver.Drop})
				}
				cause := errors.New("the caller has gone")
				const patience = 100 * time.Millisecond
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, cause)
				defer cancel()
				within(t, patience, "Connect", func() {
					_, err := session.Connect(ctx, three, session.WithDialer(srv.Dial))
					mustBe(t, err, context.DeadlineExceeded, cause)
				})
				time.Sleep(timeout) // a goroutine that is left fails the bubble
				synctest.Wait()
			})
		})
	}
}
