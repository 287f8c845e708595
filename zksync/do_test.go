package zksync_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

type doer func(context.Context, func(context.Context) error) error

// doers are all methods that call a function while something is held.
func doers(m *session.Manager) map[string]doer {
	s := zksync.NewSemaphore(m, sem, 3)
	return map[string]doer{
		"Mutex.Do":         zksync.NewMutex(m, path).Do,
		"RWMutex.Do":       zksync.NewRWMutex(m, "/rw").Do,
		"RWMutex.RDo":      zksync.NewRWMutex(m, "/rw").RDo,
		"Semaphore.Do":     func(ctx context.Context, fn func(context.Context) error) error { return s.Do(ctx, 2, fn) },
		"DoubleBarrier.Do": zksync.NewDoubleBarrier(m, "/b", 1).Do,
		"Election.Run":     zksync.NewElection(m, "/master").Run,
	}
}

// eachDoer runs a test for each of them.
func eachDoer(t *testing.T, test func(t *testing.T, srv *zksynctest.Server, m *session.Manager, name string, do doer)) {
	for name := range doers(nil) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				test(t, srv, m, name, doers(m)[name])
			})
		})
	}
}

// holds is how many znodes the sessions hold.
func holds(srv *zksynctest.Server) (n int) {
	synctest.Wait()
	for _, s := range srv.Sessions() {
		n += len(s.Ephemerals)
	}
	return n
}

// Do, RDo and Run call their function while something is held, return its error as it is, release also at a panic, and
// do not call it if ctx has ended.
func TestEveryDoReleases(t *testing.T) {
	eachDoer(t, func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, _ string, do doer) {
		var held context.Context
		fn := func(ctx context.Context) error {
			if held = ctx; ctx.Err() != nil || holds(srv) == 0 {
				t.Errorf("called with a context that has ended with %v, %d znodes are held", context.Cause(ctx), holds(srv))
			}
			return errEnough
		}
		for range 2 {
			if err := do(t.Context(), fn); err != errEnough {
				t.Error("not fn's error as it is:", err)
			}
			if cause := context.Cause(held); !errors.Is(cause, zksync.ErrReleased) || holds(srv) > 0 {
				t.Errorf("the context has ended with %v, %d znodes are held", cause, holds(srv))
			}
		}
		func() {
			defer func() {
				if r := recover(); r != "oh" {
					t.Error("recovered", r)
				}
			}()
			do(t.Context(), func(context.Context) error { panic("oh") })
		}()
		if n := holds(srv); n > 0 {
			t.Errorf("%d znodes are held after a panic", n)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		held = nil
		if err := do(ctx, fn); !errors.Is(err, errEnough) || held != nil {
			t.Errorf("with a ctx that has ended: %v, called: %v", err, held != nil)
		}
	})
}

// Do, RDo and Run join the error of their function with ErrLost after a loss.
func TestEveryDoTellsOfALoss(t *testing.T) {
	eachDoer(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, name string, do doer) {
		calls := 0
		err := do(t.Context(), func(ctx context.Context) error {
			if calls++; calls > 1 {
				return nil
			}
			srv.ExpireSession(live(t, m).ID())
			if cause := ended(t, ctx, time.Minute); !errors.Is(cause, zksync.ErrLost) {
				t.Errorf("the context has ended with %v", cause)
			}
			return errEnough
		})
		switch {
		case name == "Election.Run":
			if err != nil || calls != 2 {
				t.Errorf("%d calls, and %v", calls, err)
			}
		case !errors.Is(err, errEnough) || !errors.Is(err, zksync.ErrLost) || calls != 1:
			t.Errorf("%d calls, and %v", calls, err)
		}
		if n := holds(srv); n > 0 {
			t.Errorf("%d znodes are held", n)
		}
	})
}

// Manager.Close waits for the functions of Do, RDo and Run while the session is proven alive.
func TestManagerCloseAwaitsEveryDo(t *testing.T) {
	eachDoer(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, name string, do doer) {
		release := make(chan struct{})
		finish := sync.OnceFunc(func() { close(release) })
		defer finish()
		done := start(func() error {
			return do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, zksync.ErrLost) || !errors.Is(cause, zksync.ErrClosed) {
					t.Errorf("the context has ended with %v", cause)
				}
				<-release
				return nil
			})
		})
		closed := start(m.Close)
		time.Sleep(time.Second)
		pending(t, "Close", closed)
		if holds(srv) == 0 {
			t.Error("it was given up while the function runs")
		}
		finish()
		if err := <-done; !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		over(t, "Close", closed)
		if n := holds(srv); n > 0 {
			t.Errorf("%d znodes are held", n)
		}
	})
}
