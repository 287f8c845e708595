package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Do and Retry repeat their function only on ErrConnectionLost and ErrLost, and return any other error unchanged.
func TestDoRepeatsOverLossesOnly(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		ours := errors.New("ours")
		for _, result := range []error{nil, ours} {
			calls := 0
			err := m.Do(t.Context(), func(ctx context.Context, s *session.Session) error {
				switch calls++; calls {
				case 1:
					return &session.Error{Op: "x", Err: session.ErrConnectionLost}
				case 2:
					srv.ExpireSession(s.ID())
					<-ctx.Done()
					return context.Cause(ctx)
				}
				if s.Err() != nil {
					t.Errorf("called with a session that is over: %v", s.Err())
				}
				return result
			})
			if calls != 3 || !errors.Is(err, result) {
				t.Errorf("%d calls, error %v; want three and %v", calls, err, result)
			}
		}
		calls := 0
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := m.Do(ctx, func(context.Context, *session.Session) error { calls++; return session.ErrConnectionLost })
		mustBe(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != time.Minute || calls < 40 || calls > 200 {
			t.Errorf("%d calls in %v, want about one a second for a minute", calls, took)
		}
		// A function that begins shortly before the Manager closes is not repeated.
		err = m.Do(t.Context(), func(ctx context.Context, _ *session.Session) error {
			go m.Close()
			<-ctx.Done()
			return session.ErrConnectionLost
		})
		mustBe(t, err, session.ErrConnectionLost)
		<-m.Done()
	})
}

// Manager.Session waits for a session that is connected, and fails with ctx or ErrClosed.
func TestSessionWaitsForALiveOne(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		first := current(t, m)
		if first.ID() == 0 || first.Timeout() != timeout || len(srv.Sessions()) != 1 || srv.Sessions()[0].ID != first.ID() {
			t.Errorf("session %#x with %v, the server has %+v", first.ID(), first.Timeout(), srv.Sessions())
		}
		srv.Stop()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Session(ctx)
		mustBe(t, err, context.DeadlineExceeded)
		got := make(chan *session.Session)
		for range 10 {
			go func() {
				s, err := m.Session(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- s
			}()
		}
		srv.Start()
		srv.ExpireSession(first.ID())
		for range 10 {
			if s := <-got; s == first || s.Err() != nil {
				t.Errorf("session %#x, error %v: want the next one", s.ID(), s.Err())
			}
		}
	})
}

// The servers limit WithTimeout, and Timeout and Deadline follow the negotiated value.
func TestNegotiatedTimeout(t *testing.T) {
	for ask, want := range map[time.Duration]time.Duration{time.Millisecond: 4 * time.Second, 7 * time.Second: 7 * time.Second, time.Hour: 40 * time.Second} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three, session.WithTimeout(ask)))
			if s.Timeout() != want {
				t.Errorf("asked for %v, got %v, want the %v that the server allows", ask, s.Timeout(), want)
			}
			// The Deadline and the heartbeats follow the negotiated timeout.
			hold(t, s)
			srv.Partition(s.ID())
			deadline := s.Deadline()
			if got := time.Until(deadline); got != want*19/20 {
				t.Errorf("the Deadline is in %v, want %v", got, want*19/20)
			}
			<-s.Done()
			if late := time.Since(deadline); late != 0 {
				t.Errorf("lost %v after the Deadline", late)
			}
		})
	}
}

// The context of the function that Do or Retry calls ends with ctx and with the session.
func TestDoEndsItsContextWithTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := m.Do(ctx, func(ctx context.Context, _ *session.Session) error {
			cancel(why)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return context.Cause(ctx)
		})
		mustBe(t, err, why)
		err = m.Do(ctx, func(context.Context, *session.Session) error { t.Error("called"); return nil })
		mustBe(t, err, context.Canceled, why)
	})
}
