package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// ended waits for the context of a hold and returns its cause.
func ended(t testing.TB, ctx context.Context, within time.Duration) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(within):
		t.Fatalf("the context of the hold has not ended within %v", within)
		return nil
	}
}

// The context of a hold ends with a cause: ErrReleased, ErrLost, both ErrLost and ErrClosed, or the cause of the
// caller's context, which releases nothing.
func TestHeldContextEndsWithItsCause(t *testing.T) {
	type key struct{}
	tests := []struct {
		name   string
		end    func(srv *zksynctest.Server, m *session.Manager, id int64, mu *zksync.Mutex, cancel func())
		causes []error
		not    error
		unlock []error // nil is success
		within time.Duration
	}{
		{"released", func(_ *zksynctest.Server, _ *session.Manager, _ int64, mu *zksync.Mutex, _ func()) { mu.Unlock() },
			[]error{zksync.ErrReleased}, zksync.ErrLost, []error{zksync.ErrNotHeld}, 0},
		{"expired", func(srv *zksynctest.Server, _ *session.Manager, id int64, _ *zksync.Mutex, _ func()) {
			srv.ExpireSession(id)
		}, []error{zksync.ErrLost, zk.ErrSessionExpired}, zksync.ErrClosed, []error{zksync.ErrLost}, time.Second},
		{"lease ran out", func(srv *zksynctest.Server, _ *session.Manager, _ int64, _ *zksync.Mutex, _ func()) { srv.Freeze() },
			[]error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, 9500 * time.Millisecond},
		{"closed", func(_ *zksynctest.Server, m *session.Manager, _ int64, _ *zksync.Mutex, _ func()) { m.Close() },
			[]error{zksync.ErrLost, zksync.ErrClosed}, nil, []error{zksync.ErrLost, zksync.ErrClosed}, 0},
		{"znode removed", func(srv *zksynctest.Server, _ *session.Manager, _ int64, _ *zksync.Mutex, _ func()) {
			time.Sleep(time.Second)
			srv.Delete(path + "/" + inLine(srv, path)[0])
		}, []error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, 0},
		{"znode removed early", func(srv *zksynctest.Server, _ *session.Manager, _ int64, _ *zksync.Mutex, _ func()) {
			srv.Delete(path + "/" + inLine(srv, path)[0])
		}, []error{zksync.ErrLost}, zksync.ErrClosed, []error{zksync.ErrLost}, 100 * time.Millisecond},
		{"caller's ctx", func(_ *zksynctest.Server, _ *session.Manager, _ int64, _ *zksync.Mutex, cancel func()) { cancel() },
			[]error{errEnough}, zksync.ErrLost, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				mu := zksync.NewMutex(m, path)
				parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "mine"))
				ctx, err := mu.LockContext(parent)
				if err != nil {
					t.Fatal(err)
				}
				if ctx.Value(key{}) != "mine" {
					t.Error("the context of the hold is not derived from the caller's")
				}
				test.end(srv, m, live(t, m).ID(), mu, func() { cancel(errEnough) })
				synctest.Wait()
				cause := ended(t, ctx, test.within+time.Nanosecond)
				for _, want := range test.causes {
					if !errors.Is(cause, want) {
						t.Errorf("ended with %v, want %v", cause, want)
					}
				}
				if test.not != nil && errors.Is(cause, test.not) {
					t.Errorf("ended with %v, which is %v", cause, test.not)
				}
				err = mu.Unlock()
				for _, want := range test.unlock {
					if !errors.Is(err, want) {
						t.Errorf("Unlock: %v, want %v", err, want)
					}
				}
				if test.unlock == nil && err != nil {
					t.Errorf("Unlock: %v", err)
				}
				if err := mu.Unlock(); !errors.Is(err, zksync.ErrNotHeld) {
					t.Errorf("second Unlock: %v", err)
				}
				srv.Thaw()
			})
		})
	}
}

var errEnough = errors.New("that is enough")

// Unlock returns ErrLost for a deleted znode, even if no watch had been set on it.
func TestUnlockTellsOfARemovedZnodeThatNothingWatched(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		lock(t, mu)
		srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		warm(t, mu)
	})
}

// The token of a hold is the czxid of its znode and grows with each hold, and a context of no hold has none.
func TestTokenIsTheCzxid(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		last := int64(0)
		check := func(token int64) {
			t.Helper()
			_, stat, err := live(t, m).Exists(t.Context(), path+"/"+wantInLine(t, srv, 1)[0])
			if err != nil || stat.Czxid != token {
				t.Errorf("token %d, czxid %v, error %v", token, stat, err)
			}
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
		}
		mu, other := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
		_, token := hold(t, mu)
		check(token)
		got := make(chan int64)
		go func() { // its token comes from a read, since it is not alone
			_, token := hold(t, other)
			got <- token
		}()
		synctest.Wait()
		unlock(t, mu)
		check(<-got)
		unlock(t, other)

		srv.Inject(zksynctest.Fault{Op: 14, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		_, token = hold(t, mu) // found again by its name
		check(token)
		unlock(t, mu)
		if _, ok := zksync.Token(t.Context()); ok {
			t.Error("a context of no hold has a token")
		}
	})
}

// A lost hold occupies its value until its release has returned ErrLost.
func TestLostHoldOccupiesItsValue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu := zksync.NewMutex(m, path)
		ctx, _ := hold(t, mu)
		next := locking(t.Context(), mu)
		srv.ExpireSession(live(t, m).ID())
		ended(t, ctx, time.Second)
		time.Sleep(time.Hour)
		pending(t, "Lock behind a lost hold that was not unlocked", next)
		again, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := mu.Lock(again); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock by the holder: %v", err)
		}
		if ok, err := mu.TryLock(t.Context()); ok || err != nil {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		if err := <-next; err != nil {
			t.Error(err)
		}
		unlock(t, mu) // of the next one, which is no concern of the first
		wantInLine(t, srv, 0)
	})
}

// A release waits for the answer for as long as the session is proven alive, then continues in the background and
// returns nil.
func TestUnlockWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu := zksync.NewMutex(m, path)
		ctx, _ := hold(t, mu)
		s := live(t, m)
		srv.Freeze()
		deadline := s.Deadline()
		done := make(chan error, 1)
		go func() { done <- mu.Unlock() }()
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), zksync.ErrReleased) {
			t.Error("the context of the hold lives while it is released:", context.Cause(ctx))
		}
		if err := <-done; err != nil {
			t.Error("Unlock:", err)
		}
		if !time.Now().Equal(deadline) {
			t.Errorf("Unlock returned %v after the Deadline", time.Since(deadline))
		}
		// Nothing is held any more, so nothing but the server ends the session,
		// and it goes on removing the znode.
		time.Sleep(100 * time.Millisecond)
		srv.Thaw()
		if err := s.Sync(t.Context(), "/"); err != nil {
			t.Error("the session has ended with a hold that was released:", err)
		}
		synctest.Wait()
		wantInLine(t, srv, 0)
		warm(t, mu)
	})
}

// WithMaxWait bounds the wait for a lock with ErrMaxWait, and does not bound the hold.
func TestMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		holder := zksync.NewMutex(m, path)
		lock(t, holder)
		mu := zksync.NewMutex(srv.Connect(t), path, zksync.WithMaxWait(time.Minute))
		lockedOut := func(at *zksync.Mutex) {
			t.Helper()
			start := time.Now()
			err := at.Lock(t.Context())
			if !errors.Is(err, zksync.ErrMaxWait) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("Lock after %v: %v", time.Since(start), err)
			}
		}
		lockedOut(mu)
		synctest.Wait()
		wantInLine(t, srv, 1)
		unlock(t, holder)

		ctx, _ := hold(t, mu)
		lockedOut(mu) // in this process, by another goroutine
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Error("WithMaxWait has ended the hold:", context.Cause(ctx))
		}
		unlock(t, mu)
	})
}
