package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// onMulti has something happen at the next transactions.
func onMulti(srv *zksynctest.Server, at zksynctest.Moment, times int, do ...zksynctest.Action) {
	for _, do := range do {
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: times, At: at, Do: do})
	}
}

// A message that was put is in the queue once, even if a request or an answer is lost.
func TestPutHappensOnce(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for what, do := range map[string]func(srv *zksynctest.Server, id int64) []zksynctest.Action{
			"the connection breaks": func(*zksynctest.Server, int64) []zksynctest.Action {
				return []zksynctest.Action{zksynctest.Disconnect}
			},
			"the session expires": func(srv *zksynctest.Server, id int64) []zksynctest.Action {
				return []zksynctest.Action{zksynctest.Call(func() { srv.ExpireSession(id) }), zksynctest.Disconnect}
			},
			"the server restarts": func(srv *zksynctest.Server, id int64) []zksynctest.Action {
				return []zksynctest.Action{zksynctest.Call(func() { srv.Stop(); time.AfterFunc(time.Second, func() { srv.Start() }) }), zksynctest.Disconnect}
			},
		} {
			t.Run(fmt.Sprintf("%s %v", what, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					q := zksync.NewQueue(m, queuePath)
					defer q.Close()
					put(t, q, "first")
					onMulti(srv, at, 1, do(srv, live(t, m).ID())...)
					put(t, q, "second")
					put(t, q, "third")
					wantMessages(t, srv, "first", "second", "third")
				})
			})
		}
	}
}

// A Put happens once, however often its answer is lost.
func TestPutHappensOnceAfterManyTries(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		onMulti(srv, zksynctest.BeforeReply, 5, zksynctest.Disconnect)
		put(t, q, "second")
		onMulti(srv, zksynctest.BeforeCommit, 5, zksynctest.Disconnect)
		put(t, q, "third")
		wantMessages(t, srv, "first", "second", "third")
	})
}

// Each message is in the queue once while many goroutines put, connections drop and sessions expire.
func TestPutsUnderFaults(t *testing.T) {
	const goroutines, each = 20, 30
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				rng := rand.New(rand.NewPCG(seed, 6))
				var ms []*session.Manager
				var qs []*zksync.Queue
				for range 3 {
					m := srv.Connect(t)
					q := zksync.NewQueue(m, queuePath)
					defer q.Close()
					ms, qs = append(ms, m), append(qs, q)
				}
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						for _, m := range numbered(fmt.Sprintf("%02d-", g), each) {
							put(t, qs[g%3], m)
							time.Sleep(time.Second)
						}
					})
				}
				moments := []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply}
				for range 2 * each {
					time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
					f := zksynctest.Fault{Op: zkserver.OpMulti, At: moments[rng.IntN(3)], Times: 1 + rng.IntN(3), Do: zksynctest.Disconnect}
					if m := ms[rng.IntN(3)]; rng.IntN(4) == 0 {
						if s, err := m.Session(t.Context()); err == nil {
							f.Do = zksynctest.Call(func() { srv.ExpireSession(s.ID()) })
							f.Times = 1
						}
					}
					srv.Inject(f)
				}
				wg.Wait()
				got := make(map[string][]string)
				for _, m := range inQueue(srv, queuePath) {
					got[m[:3]] = append(got[m[:3]], m)
				}
				for g := range goroutines {
					prefix := fmt.Sprintf("%02d-", g)
					if want := numbered(prefix, each); !slices.Equal(got[prefix], want) {
						t.Errorf("in the queue: %q, want %q", got[prefix], want)
					}
				}
			})
		})
	}
}

// A Put that was not sent when its ctx ends is withdrawn.
func TestPutIsWithdrawn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		put(t, q, "first")
		srv.Stop()
		synctest.Wait()
		why := errors.New("why")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		start := time.Now()
		err := q.Put(ctx, []byte("withdrawn"))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("Put: %v, want the end of ctx and its cause", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Put took %v", took)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- q.Put(t.Context(), []byte("second")) }()
		pending(t, "Put without a server", waiting)
		srv.Start()
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		wantMessages(t, srv, "first", "second")
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if err := q.Put(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("Put with a ctx that has ended: %v", err)
		}
		wantMessages(t, srv, "first", "second")
	})
}

// A Put that was under way when its ctx ends is ErrOutcomeUnknown, and happens soon or never.
func TestPutIsGivenUpWhenSent(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			q := newQueue(t, srv)
			put(t, q, "first")
			onMulti(srv, at, 1, zksynctest.Delay(3*time.Second), zksynctest.Disconnect)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := q.Put(ctx, []byte("given up"))
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zksync.ErrOutcomeUnknown) {
				t.Errorf("Put: %v, want the end of ctx, and ErrOutcomeUnknown", err)
			}
			put(t, q, "second") // comes behind
			want := []string{"first", "second"}
			if at == zksynctest.AfterCommit {
				want = []string{"first", "given up", "second"}
			}
			wantMessages(t, srv, want...)
			time.Sleep(time.Hour)
			wantMessages(t, srv, want...)
		})
	}
}

// A request that a server holds back does not happen after its message was put under the next session.
func TestPutBehindALaggingServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		put(t, q, "first")
		id := live(t, m).ID()
		srv.Lag(id)
		onMulti(srv, zksynctest.AfterCommit, 1, zksynctest.Call(func() { srv.Lag(id) }), zksynctest.Disconnect)
		put(t, q, "second")
		srv.CutFromLeader(id, true)
		time.AfterFunc(time.Minute, func() { srv.CutFromLeader(id, false) }) // when the session has expired
		put(t, q, "third")
		wantMessages(t, srv, "first", "second", "third")
	})
}

// A Put creates the directory of a queue again if it was deleted.
func TestDirectoryOfAQueueVanishes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		names, _ := srv.Children(queuePath)
		for _, marker := range markers(t, srv) {
			srv.Delete(marker)
		}
		for _, name := range names {
			srv.Delete(queuePath + "/" + name)
		}
		if err := srv.Delete(queuePath); err != nil {
			t.Fatal(err)
		}
		put(t, q, "second")
		wantMessages(t, srv, "second")
	})
}

// A Put that fails with any other error is not in the queue, and the value can be used again.
func TestPutWithoutPermission(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		if err := s.MakeDir(t.Context(), "/queues"); err != nil {
			t.Fatal(err)
		}
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		if _, err := s.Create(t.Context(), queuePath, nil, 0, zk.WorldACL(zk.PermRead)...); err != nil {
			t.Fatal(err)
		}
		if err := q.Put(t.Context(), nil); !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), queuePath) {
			t.Errorf("Put: %v, want ErrNoAuth", err)
		}
		if err := s.Delete(t.Context(), queuePath, -1); err != nil {
			t.Fatal(err)
		}
		put(t, q, "second")
		wantMessages(t, srv, "second")
	})
}

// A Put goes on while the server deletes the directory of its marker, which is empty, again and again.
func TestPutWhileMarkersAreReaped(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := zksync.NewQueue(srv.Connect(t), queuePath)
		defer q.Close()
		srv.Inject(zksynctest.Fault{Path: queuePath + "/zksync-markers/*", Times: 5, Do: zksynctest.Error(-101)})
		put(t, q, "first")
		wantMessages(t, srv, "first")
	})
}

// A Put pauses between its tries while the server answers its requests with internal errors, ends with its ctx, and
// succeeds when the server is well again.
func TestPutPausesBetweenInternalErrors(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: 30, Match: func(op zksynctest.Op) bool { return len(op.Sub) > 1 },
			Do: zksynctest.Error(zkserver.ErrSystem)})
		srv.ResetOps()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := q.Put(ctx, []byte("never")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put: %v, want that its ctx has ended", err)
		}
		if d := time.Since(began); d > 1100*time.Millisecond {
			t.Errorf("Put took %v, want a second", d)
		}
		if n := len(requests(srv)); n > 100 {
			t.Errorf("%d requests in a second, want at most 100", n)
		}
		put(t, q, "second")
		wantMessages(t, srv, "first", "second")
	})
}
