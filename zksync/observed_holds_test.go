package zksync_test

import (
	"context"
	"errors"
	"fmt"
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

// The observer gets the loss of a hold exactly if the transaction that should replace its znode says that another client
// has removed the znode, and not if that transaction has no answer and may have replaced it.
func TestObserverOfAReplacedHold(t *testing.T) {
	replacing := func(op zksynctest.Op) bool { return op.Code == zkserver.OpMulti && len(op.Sub) > 1 }
	for _, removed := range []bool{true, false} {
		t.Run(fmt.Sprintf("downgrade, removed %v", removed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				end := make(chan session.HoldEnded, 1)
				m := srv.Connect(t, session.WithObserver(session.Observer{HoldEnded: func(e session.HoldEnded) { end <- e }}))
				rw := zksync.NewRWMutex(m, path)
				must(t, rw.Lock(t.Context()))
				if removed {
					must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
				} else {
					time.Sleep(time.Second) // from now on the znode is watched
					srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: replacing, At: zkserver.BeforeReply, Do: zksynctest.Drop})
				}
				err := rw.Downgrade(within(t, 50*time.Millisecond))
				synctest.Wait()
				if err == nil || errors.Is(err, zksync.ErrLost) != removed {
					t.Fatal("Downgrade:", err)
				}
				if e := <-end; errors.Is(e.Lost, zksync.ErrLost) != removed {
					t.Errorf("Downgrade returned %v, and the observer got %v", err, e.Lost)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		end := make(chan session.HoldEnded, 3)
		m := srv.Connect(t, session.WithObserver(session.Observer{HoldEnded: func(e session.HoldEnded) { end <- e }}))
		must(t, zksync.NewSemaphore(srv.Connect(t), path, 1).Acquire(t.Context(), 1))
		acquired := background(t.Context(), func(ctx context.Context) error { return zksync.NewSemaphore(m, path, 1).Acquire(ctx, 1) })
		must(t, srv.Delete(path+"/locks/"+inLine(srv, path+"/locks")[0]))
		must(t, srv.Delete(path+"/leases/"+inLine(srv, path+"/leases")[0]))
		if err := <-acquired; !errors.Is(err, zksync.ErrRemoved) {
			t.Fatal("Acquire:", err)
		}
		if e := <-end; !errors.Is(e.Lost, zksync.ErrRemoved) {
			t.Errorf("the observer got %v for the lock of the semaphore, want ErrRemoved", e.Lost)
		}
	})
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
