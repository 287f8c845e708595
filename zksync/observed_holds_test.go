package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// observedHold is a kind of hold for the tests of observers.
type observedHold struct {
	name string
	dir  string // of the znode of the hold, which is the only child
	take func(ctx context.Context, m *session.Manager) (held context.Context, release func() error, err error)
}

var observedHolds = []observedHold{
	{"mutex", path, func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		mu := zksync.NewMutex(m, path)
		held, err := mu.LockContext(ctx)
		return held, mu.Unlock, err
	}},
	{"rlock", path, func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		rw := zksync.NewRWMutex(m, path)
		held, err := rw.RLockContext(ctx)
		return held, rw.RUnlock, err
	}},
	{"election", path, func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		e := zksync.NewElection(m, path)
		held, err := e.Campaign(ctx)
		return held, e.Resign, err
	}},
	{"ephemeral election", "/locks", func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		e := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral))
		held, err := e.Campaign(ctx)
		return held, e.Resign, err
	}},
	{"semaphore", path + "/leases", func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		s := zksync.NewSemaphore(m, path, 1)
		held, err := s.AcquireContext(ctx, 1)
		return held, func() error { return s.Release(1) }, err
	}},
	{"double barrier", path, func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		b := zksync.NewDoubleBarrier(m, path, 1)
		return nil, func() error { return b.Leave(context.Background()) }, b.Enter(ctx)
	}},
}

// A hold whose release says that the znode was removed is reported to the observer with the loss, in the first moment
// of the hold and later, and a hold that was released without one.
func TestObserverOfARemovedHold(t *testing.T) {
	for _, kind := range observedHolds {
		for what, removed := range map[string]time.Duration{"released": -1, "removed at once": 0, "removed later": 2 * time.Second} {
			t.Run(kind.name+", "+what, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					ended := make(chan session.HoldEnded, 10)
					m := srv.Connect(t, session.WithObserver(session.Observer{HoldEnded: func(e session.HoldEnded) { ended <- e }}))
					_, release, err := kind.take(t.Context(), m)
					must(t, err)
					for len(ended) > 0 {
						<-ended // the lock of the semaphore
					}
					if removed >= 0 {
						time.Sleep(removed)
						must(t, srv.Delete(kind.dir+"/"+inLine(srv, kind.dir)[0]))
						synctest.Wait()
					}
					err = release()
					synctest.Wait()
					if lost := errors.Is(err, zksync.ErrLost); lost != (removed >= 0) {
						t.Fatalf("the release returned %v", err)
					}
					if e := <-ended; errors.Is(e.Lost, zksync.ErrLost) != (removed >= 0) {
						t.Errorf("the release returned %v, and the observer got %v", err, e.Lost)
					}
				})
			})
		}
	}
}

// An observer that counts the holds at each path counts to zero again when the hold has ended, and gets the path of an
// election whose znode is that path.
func TestObserverCountsHoldsOfAPath(t *testing.T) {
	downgraded := observedHold{"downgrade", path, func(ctx context.Context, m *session.Manager) (context.Context, func() error, error) {
		rw := zksync.NewRWMutex(m, path)
		must(t, rw.Lock(ctx))
		return nil, rw.RUnlock, rw.Downgrade(ctx)
	}}
	for _, kind := range append(observedHolds, downgraded) {
		t.Run(kind.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				// The functions are called by this goroutine alone: one call at a time is under way.
				holds := map[string]int{}
				m := srv.Connect(t, session.WithObserver(session.Observer{
					HoldStarted: func(e session.HoldStarted) { holds[e.Path]++ },
					HoldEnded:   func(e session.HoldEnded) { holds[e.Path]-- },
				}))
				_, release, err := kind.take(t.Context(), m)
				must(t, err)
				synctest.Wait()
				want := path
				if kind.name == "semaphore" {
					want = kind.dir
				}
				if holds[want] != 1 {
					t.Errorf("the observer counts %v, want 1 at %s", holds, want)
				}
				must(t, release())
				synctest.Wait()
				for p, n := range holds {
					if n != 0 {
						t.Errorf("%d holds of %s are left", n, p)
					}
				}
			})
		})
	}
}

// A holder whose reads of its znode are refused learns of the removal of the znode from the transactions that prove its
// session alive.
func TestTheProofOfTheSessionTellsOfARemoval(t *testing.T) {
	for _, kind := range observedHolds {
		t.Run(kind.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				var held context.Context
				if kind.name == "double barrier" {
					inside := make(chan context.Context)
					done := background(t.Context(), func(ctx context.Context) error {
						return zksync.NewDoubleBarrier(m, path, 1).Do(ctx, func(ctx context.Context) error {
							inside <- ctx
							<-ctx.Done()
							return nil
						})
					})
					held = <-inside
					defer func() { <-done }()
				} else {
					var err error
					var release func() error
					held, release, err = kind.take(t.Context(), m)
					must(t, err)
					defer release()
				}
				srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetData, Times: -1, Do: zksynctest.Error(-127)})
				time.Sleep(time.Second)
				dir := kind.dir
				must(t, srv.Delete(dir+"/"+inLine(srv, dir)[0]))
				if cause := ended(t, held, live(t, m).Timeout()); !errors.Is(cause, zksync.ErrLost) {
					t.Errorf("the hold ended with %v, want ErrLost", cause)
				}
			})
		})
	}
}
