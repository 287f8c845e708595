package zksync_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// At any time at most one goroutine of all sessions holds the lock.
func TestMutexBetweenSessions(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		w := &witness{t: t}
		var wg sync.WaitGroup
		for i := range 5 {
			mu := zksync.NewMutex(srv.Connect(t), path)
			wg.Go(func() {
				for range 20 {
					ctx, _ := hold(t, mu)
					w.hold(worker(i), ctx, 0)
					unlock(t, mu)
				}
			})
		}
		wg.Wait()
		if w.passed != 100 {
			t.Errorf("%d of 100 holds", w.passed)
		}
		empty(t, srv, path)
	})
}

// empty waits until nothing is left in a directory, which takes the janitor a
// moment in which a caller gave up.
func empty(t *testing.T, srv servers.Server, path string) {
	t.Helper()
	s := live(t, srv.Connect(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		names, _, events, err := s.ChildrenW(ctx, path)
		if err != nil || len(names) == 0 {
			if err != nil {
				t.Errorf("left in line: %v, %v", names, err)
			}
			return
		}
		if ev := <-events; ev.Err != nil {
			t.Errorf("left in line: %v", names)
			return
		}
	}
}

// One goroutine at most holds the lock over disconnects and expired sessions, and every waiter gets it.
func TestMutexOverDisconnectsAndExpiry(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		path := servers.Path(t)
		w := &witness{t: t, grace: 2 * time.Second}
		ms := []*session.Manager{srv.Connect(t), srv.Connect(t), srv.Connect(t)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // on a busy machine
		defer cancel()
		var wg sync.WaitGroup
		for i, m := range ms {
			for range 3 {
				// One value each: a hand-over in memory asks nobody, and so does
				// not learn of a session that was ended by force.
				mu := zksync.NewMutex(m, path)
				wg.Go(func() {
					for ctx.Err() == nil {
						held, err := mu.LockContext(ctx)
						if err != nil {
							if ctx.Err() == nil && !errors.Is(err, zksync.ErrLost) {
								t.Error(err)
							}
							continue
						}
						w.hold(worker(i), held, 5*time.Millisecond)
						if err := w.unlock(mu, held); err != nil && !errors.Is(err, zksync.ErrLost) {
							t.Error(err)
						}
					}
				})
			}
		}
		for i := range 6 {
			s := live(t, ms[i%3])
			if i%2 == 0 {
				srv.Disconnect(t, s.ID())
			} else {
				srv.Expire(t, s.ID())
			}
			select { // the load goes on meanwhile
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		for w.holds() < 20 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		if w.passed < 20 {
			t.Errorf("only %d holds", w.passed)
		}
		empty(t, srv, path)
	})
}

// TryLock returns false without an error if another contender holds the lock, and leaves nothing.
func TestTryLock(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		mu, other := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(srv.Connect(t), path)
		for range 3 {
			if ok, err := mu.TryLock(t.Context()); !ok || err != nil {
				t.Fatalf("TryLock: %v, %v", ok, err)
			}
			for _, at := range []*zksync.Mutex{mu, other} {
				if ok, err := at.TryLock(t.Context()); ok || err != nil {
					t.Errorf("TryLock beside a holder: %v, %v", ok, err)
				}
			}
			names, _, err := live(t, srv.Connect(t)).Children(t.Context(), path)
			if err != nil || len(names) != 1 {
				t.Errorf("TryLock has left %v, %v", names, err)
			}
			unlock(t, mu)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		if ok, err := mu.TryLock(ctx); ok || !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled) {
			t.Errorf("TryLock with a ctx that has ended: %v, %v", ok, err)
		}
		if err := mu.Lock(ctx); !errors.Is(err, errEnough) {
			t.Error("Lock with a ctx that has ended:", err)
		}
		empty(t, srv, path)
	})
}

// Do holds the lock while its function runs, and releases it when the function returns or panics.
func TestDo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu := zksync.NewMutex(m, path)
		var held context.Context
		if err := mu.Do(t.Context(), func(ctx context.Context) error {
			held = ctx
			wantInLine(t, srv, 1)
			if _, ok := zksync.Token(ctx); !ok {
				t.Error("no token")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if !errors.Is(context.Cause(held), zksync.ErrReleased) {
			t.Error(context.Cause(held))
		}
		if err := mu.Do(t.Context(), func(context.Context) error { return errEnough }); err != errEnough {
			t.Error("Do does not return fn's error as it is:", err)
		}
		err := mu.Do(t.Context(), func(ctx context.Context) error {
			srv.ExpireSession(live(t, m).ID())
			<-ctx.Done()
			return errEnough
		})
		if !errors.Is(err, errEnough) || !errors.Is(err, zksync.ErrLost) {
			t.Error("after a loss:", err)
		}
		func() {
			defer func() {
				if recover() != errEnough {
					t.Error("the panic got lost")
				}
			}()
			mu.Do(t.Context(), func(context.Context) error { panic(errEnough) })
		}()
		wantInLine(t, srv, 0)
		warm(t, mu)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := mu.Do(ctx, func(context.Context) error { t.Error("called"); return nil }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// While Manager.Close waits for a function of Do, no other client gets the lock.
func TestCloseAwaitsDo(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			mu, other := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
			release := make(chan struct{})
			done := make(chan error, 1)
			go func() {
				done <- mu.Do(t.Context(), func(ctx context.Context) error {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, zksync.ErrClosed) {
						t.Error(cause)
					}
					<-release
					return nil
				})
			}()
			synctest.Wait()
			waiting := locking(t.Context(), other)
			deadline := live(t, m).Deadline()
			closed := make(chan error, 1)
			go func() { closed <- m.Close() }()
			if stubborn {
				<-closed
				if !time.Now().Equal(deadline) {
					t.Errorf("Close returned %v after the Deadline", time.Since(deadline))
				}
			} else {
				time.Sleep(time.Second)
				pending(t, "Close", closed)
				pending(t, "Lock of another", waiting)
			}
			close(release)
			if err := <-done; !errors.Is(err, zksync.ErrLost) {
				t.Error(err)
			}
			if !stubborn {
				<-closed
			}
			if err := <-waiting; err != nil {
				t.Error(err)
			}
			unlock(t, other)
		})
	}
}

// The first call of a value reports a bad path or option and names it, and Unlock without a lock is ErrNotHeld.
func TestMisuseIsReportedByTheFirstCall(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, test := range []struct {
			path string
			opts []zksync.MutexOption
			want error
			says string
		}{
			{"locks", nil, session.ErrInvalidPath, `"locks"`},
			{"", nil, session.ErrInvalidPath, "empty"},
			{"/locks/", nil, session.ErrInvalidPath, `"/locks/"`},
			{path, []zksync.MutexOption{nil}, zksync.ErrInvalidOption, "option 1"},
			{path, []zksync.MutexOption{zksync.WithMaxWait(0)}, zksync.ErrInvalidOption, "WithMaxWait: 0s"},
			{path, []zksync.MutexOption{zksync.WithLinger(-1)}, zksync.ErrInvalidOption, "WithLinger: -1ns"},
		} {
			mu := zksync.NewMutex(m, test.path, test.opts...)
			_, tried := mu.TryLock(t.Context())
			_, held := mu.LockContext(t.Context())
			done := mu.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil })
			for _, err := range []error{mu.Lock(t.Context()), tried, held, done} {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%q: %v, want %v with %s", test.path, err, test.want, test.says)
				}
			}
		}
		if err := zksync.NewMutex(m, path).Unlock(); !errors.Is(err, zksync.ErrNotHeld) || !strings.Contains(err.Error(), path) {
			t.Error("Unlock:", err)
		}
	})
}
