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

const multi = zkserver.OpMulti

// An Acquire that is cancelled at any step holds nothing and leaves no znode.
func TestAcquireCancelledAtEveryStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken int // by another
		run   func(context.Context, *zksync.Semaphore) error
		steps int
	}{
		{"free", 0, func(ctx context.Context, s *zksync.Semaphore) error { return s.Acquire(ctx, 3) }, 6},
		{"taken", 2, func(ctx context.Context, s *zksync.Semaphore) error { return s.Acquire(ctx, 3) }, 4},
		{"try", 2, func(ctx context.Context, s *zksync.Semaphore) error { _, err := s.TryAcquire(ctx, 3); return err }, 4},
	} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.BeforeReply} {
			for _, fault := range []zksynctest.Action{{}, zksynctest.Disconnect, zksynctest.Drop} {
				for step := 1; step <= c.steps; step++ {
					t.Run(fmt.Sprintf("%s, step %d %v %v", c.name, step, at, fault), func(t *testing.T) {
						bubble(t, func(t *testing.T, srv *zksynctest.Server) {
							m := srv.Connect(t)
							s, other := zksync.NewSemaphore(m, sem, 4), zksync.NewSemaphore(srv.Connect(t), sem, 4)
							if c.taken > 0 {
								must(t, other.Acquire(t.Context(), c.taken))
							}
							cancelledAt(t, srv, m, step, at, fault, func(ctx context.Context) error {
								err := c.run(ctx, s)
								if err == nil {
									if err = s.Release(3); errors.Is(err, zksync.ErrNotHeld) {
										err = nil
									}
								}
								return err
							})
							wantUnits(t, srv, c.taken, 0)
							if c.taken > 0 {
								must(t, other.Release(c.taken))
							}
							must(t, s.Acquire(t.Context(), 4))
							must(t, s.Release(4))
							wantUnits(t, srv, 0, 0)
						})
					})
				}
			}
		}
	}
}

// An Acquire whose session is lost while it waits joins again, wherever in the line it waited.
func TestAcquireOverSessions(t *testing.T) {
	for name, units := range map[string]int{"in line": 1, "as the head": 3} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s, other := zksync.NewSemaphore(m, sem, 3), zksync.NewSemaphore(srv.Connect(t), sem, 3)
				must(t, other.Acquire(t.Context(), 3))
				head := start(func() error { return other.Acquire(t.Context(), 2) })
				if units == 3 {
					must(t, other.Release(3))
					over(t, "another", head)
				}
				waiting := start(func() error { return s.Acquire(t.Context(), units) })
				for range 3 {
					must(t, srv.ExpireSession(live(t, m).ID()))
					time.Sleep(time.Second)
				}
				pending(t, "Acquire", waiting)
				if units == 3 {
					must(t, other.Release(2))
				} else {
					must(t, other.Release(3))
					over(t, "another", head)
				}
				over(t, "Acquire", waiting)
				must(t, s.Release(units))
			})
		})
	}
}

// A Release whose answer is lost has happened, once.
func TestReleaseWithFaults(t *testing.T) {
	for _, units := range []int{1, 3} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.BeforeReply} {
			for _, fault := range []zksynctest.Action{zksynctest.Disconnect, zksynctest.Drop} {
				t.Run(fmt.Sprintf("%d units %v %v", units, at, fault), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						s := zksync.NewSemaphore(m, sem, 3)
						must(t, s.Acquire(t.Context(), units))
						id := live(t, m).ID()
						srv.Inject(zksynctest.Fault{Session: id, At: at, Do: fault})
						time.AfterFunc(time.Second, func() { srv.Disconnect(id) })
						must(t, s.Release(units))
						time.Sleep(time.Minute)
						wantUnits(t, srv, 0, 0)
						must(t, s.Acquire(t.Context(), 3))
						must(t, s.Release(3))
					})
				})
			}
		}
	}
}

// The first waiter that gives up hands its znode on to the next waiter of its value.
func TestFirstContenderHandsItsZnodeOn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s, other := zksync.NewSemaphore(srv.Connect(t), sem, 3), zksync.NewSemaphore(srv.Connect(t), sem, 3)
		must(t, other.Acquire(t.Context(), 2))
		ctx, cancel := context.WithCancel(t.Context())
		head := start(func() error { return s.Acquire(ctx, 2) })
		third := start(func() error { return other.Acquire(t.Context(), 1) })
		next := start(func() error { return s.Acquire(t.Context(), 1) })
		wantUnits(t, srv, 2, 2)
		cancel()
		mustBe(t, <-head, context.Canceled, "acquire", sem)
		over(t, "the next one", next)
		pending(t, "one of another value", third)
		wantUnits(t, srv, 3, 1)
		must(t, s.Release(1))
		over(t, "one of another value", third)
		must(t, other.Release(1))
		must(t, other.Release(2))
	})
}

// A first waiter that gives up while it is granted its units leaves nothing behind.
func TestHeadGivesUpAtTheGrant(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		for _, fault := range []zksynctest.Action{zksynctest.Delay(time.Second), zksynctest.Disconnect} {
			t.Run(fmt.Sprint(at, fault), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					s, other := zksync.NewSemaphore(m, sem, 3), zksync.NewSemaphore(srv.Connect(t), sem, 3)
					must(t, other.Acquire(t.Context(), 3))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					head := start(func() error { return s.Acquire(ctx, 2) })
					next := start(func() error { return s.Acquire(t.Context(), 3) })
					f := zksynctest.Fault{Session: live(t, m).ID(), Op: multi, Path: semLeases + "/*", At: at, Do: zksynctest.Call(cancel)}
					srv.Inject(f)
					f.Do = fault
					srv.Inject(f)
					go other.Release(3)
					time.Sleep(20 * time.Second)
					mustBe(t, <-head, context.Canceled, "acquire", sem)
					over(t, "the next one", next)
					wantUnits(t, srv, 3, 0)
					must(t, s.Release(3))
				})
			})
		}
	}
}

// A semaphore's first waiter whose znode another client deleted fails with ErrLost.
func TestRemovedHeadIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s, other := zksync.NewSemaphore(srv.Connect(t), sem, 1), zksync.NewSemaphore(srv.Connect(t), sem, 1)
		must(t, other.Acquire(t.Context(), 1))
		head := start(func() error { return s.Acquire(t.Context(), 1) })
		time.Sleep(time.Second)
		must(t, srv.Delete(semLocks+"/"+inLine(srv, semLocks)[0]))
		mustBe(t, <-head, zksync.ErrLost, "acquire", sem)

		// At the last moment, too.
		head = start(func() error { return s.Acquire(t.Context(), 1) })
		name := inLine(srv, semLocks)[0]
		inj := srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeCommit,
			Do: zksynctest.Call(func() { srv.Delete(semLocks + "/" + name) })})
		must(t, other.Release(1))
		mustBe(t, <-head, zksync.ErrLost, "acquire", sem)
		if inj.Count() == 0 {
			t.Error("the head was removed at no moment")
		}
		wantUnits(t, srv, 0, 0)
		must(t, s.Acquire(t.Context(), 1))
		must(t, s.Release(1))
	})
}

// A release wakes the first waiter and no other, also if 200 wait.
func TestSemaphoreHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder := zksync.NewSemaphore(srv.Connect(t), sem, 4)
		for range 4 {
			must(t, holder.Acquire(t.Context(), 1))
		}
		const n = 200
		make := func(m *session.Manager) *zksync.Semaphore { return zksync.NewSemaphore(m, sem, 4) }
		all, waiting := lineUp(t, srv, n, make, func(i int, s *zksync.Semaphore) error {
			if i == 0 {
				return s.Acquire(t.Context(), 2)
			}
			return s.Acquire(t.Context(), 1)
		})
		time.Sleep(time.Second)
		srv.ResetOps()
		must(t, holder.Release(1))
		synctest.Wait()
		if got := names(requests(srv)); got != "delete getChildren2" {
			t.Errorf("a release that lets nobody in: %s", got)
		}
		must(t, holder.Release(1))
		over(t, "the first", waiting[0])
		must(t, holder.Release(1))
		over(t, "the second", waiting[1])
		for i := 2; i < n; i++ {
			pending(t, "the next", waiting[i])
			time.Sleep(time.Second)
			srv.ResetOps()
			if i == 2 {
				must(t, holder.Release(1))
			} else {
				must(t, all[i-1].Release(1))
			}
			over(t, "the next", waiting[i])
			// The delete, a look at the leases by the caller that is let in and by
			// the next head, the exchange, and the requests by which the contender
			// after that renews its watches.
			if ops := requests(srv); len(ops) > 10 {
				t.Fatalf("hand-over %d with %d waiting: %s", i, n-i, names(ops))
			}
		}
	})
}

// An uncontended Acquire and Release take three requests.
func TestUncontendedAcquireIsThreeRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := zksync.NewSemaphore(srv.Connect(t), sem, 9)
		must(t, s.Acquire(t.Context(), 1))
		must(t, s.Release(1))
		for _, units := range []int{1, 9} {
			srv.ResetOps()
			must(t, s.Acquire(t.Context(), units))
			must(t, s.Release(units))
			want := "multi getChildren2 multi delete"
			if units > 1 {
				want = "multi getChildren2 multi multi"
			}
			if got := names(requests(srv)); got != want {
				t.Errorf("%d units: %s", units, got)
			}
		}
	})
}
