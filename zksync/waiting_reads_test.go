package zksync_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Lock that waits keeps its znode in line after an internal error of a server at any of its reads, and names the error
// if its ctx ends meanwhile.
func TestLockStaysInLineAfterAnInternalError(t *testing.T) {
	for _, op := range []zkserver.OpCode{zkserver.OpGetChildren2, zkserver.OpGetData} {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				first := zksync.NewMutex(srv.Connect(t), path)
				lock(t, first)
				failing := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: op, Times: 4, Do: zksynctest.Error(-1)})
				second := locking(t.Context(), zksync.NewMutex(m, path))
				pending(t, "Lock", second)
				before := wantInLine(t, srv, 2)
				time.Sleep(time.Minute)
				if failing.Count() != 4 {
					t.Errorf("%d reads failed, want 4", failing.Count())
				}
				if after := wantInLine(t, srv, 2); after[1] != before[1] {
					t.Errorf("the waiter joined the line again: %v", after)
				}
				unlock(t, first)
				must(t, <-second)
			})
		})
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		lock(t, zksync.NewMutex(srv.Connect(t), path))
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetChildren2, Times: -1, Do: zksynctest.Error(-1)})
		err := zksync.NewMutex(m, path).Lock(within(t, time.Minute))
		if !strings.Contains(err.Error(), "code -1") || session.ClassOf(err) != session.ClassCancelled {
			t.Errorf("Lock: %v, want the end of ctx and the error of the server", err)
		}
	})
}

// A Wait at a gate that is closed goes on after an internal error of a server.
func TestWaitAtAGateGoesOnAfterAnInternalError(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		gate := zksync.NewBarrier(srv.Connect(t), path)
		must(t, gate.Set(t.Context()))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: path, Times: 4, Do: zksynctest.Error(-1)})
		wait := background(t.Context(), gate.Wait)
		time.Sleep(time.Minute)
		pending(t, "Wait", wait)
		must(t, gate.Remove(t.Context()))
		must(t, <-wait)
	})
}

// A Lock whose own or neighbouring znode has more data than WithMaxAnswer waits and gets the lock, and an Observe
// reports such a leader without its id.
func TestWaitersBesideLargeData(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 2000)
	for i, which := range []string{"neighbour", "own"} {
		t.Run(which, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t, session.WithMaxAnswer(1<<10))
				first := zksync.NewMutex(srv.Connect(t), path)
				lock(t, first)
				if which == "neighbour" {
					must(t, srv.Set(path+"/"+inLine(srv, path)[i], large))
				}
				done := locking(t.Context(), zksync.NewMutex(m, path))
				if which == "own" {
					must(t, srv.Set(path+"/"+inLine(srv, path)[i], large))
				}
				time.Sleep(time.Minute)
				pending(t, "Lock", done)
				unlock(t, first)
				must(t, <-done)
			})
		})
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t, session.WithMaxAnswer(1<<10))
		_, err := zksync.NewElection(srv.Connect(t), path).Campaign(t.Context())
		must(t, err)
		must(t, srv.Set(path+"/"+inLine(srv, path)[0], large))
		leaders := zksync.NewElection(m, path).Observe(within(t, time.Minute))
		c, ok := <-leaders.Events()
		if !ok || c.Session == 0 || c.ID != "" {
			t.Errorf("the leader is %+v, %v, want one without an id: %v", c, ok, leaders.Err())
		}
	})
}

// The reason of a wait has the first 64 bytes of another client's data, quoted if they are not printable.
func TestReasonsQuoteForeignData(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		lock(t, zksync.NewMutex(srv.Connect(t), path))
		must(t, srv.Set(path+"/"+inLine(srv, path)[0], []byte("a\nforged line\n"+strings.Repeat("x", 500_000))))
		m := srv.Connect(t)
		err := zksync.NewMutex(m, path).Lock(within(t, 2*time.Second))
		if want := `held by "a\nforged line\n` + strings.Repeat("x", 64-14) + `"... (session`; !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("an error of %d bytes, %.200q, want it to have %q", len(err.Error()), err.Error(), want)
		}
		synctest.Wait()
	})
}

// A call that waits for other clients goes on after internal errors of a server in answer to its reads: a Campaign
// with LayoutEphemeral, an Acquire whose size is in a znode, and the Enter and the Leave of a DoubleBarrier.
func TestWaitsGoOnAfterInternalErrors(t *testing.T) {
	type waiting struct {
		call func(context.Context) error
		end  func() error // ends the wait
	}
	cases := map[string]func(t *testing.T, m, other *session.Manager) waiting{
		"campaign": func(t *testing.T, m, other *session.Manager) waiting {
			first, second := zksync.NewElection(other, path, byEphemeral), zksync.NewElection(m, path, byEphemeral)
			_, err := first.Campaign(t.Context())
			must(t, err)
			return waiting{func(ctx context.Context) error { _, err := second.Campaign(ctx); return err }, first.Resign}
		},
		"acquire": func(t *testing.T, m, other *session.Manager) waiting {
			_, err := live(t, other).Create(t.Context(), "/size", []byte("1"), zk.FlagPersistent)
			must(t, err)
			size := zksync.WithSizeFrom("/size")
			first, second := zksync.NewSemaphore(other, path, 1, size), zksync.NewSemaphore(m, path, 1, size)
			must(t, first.Acquire(t.Context(), 1))
			return waiting{func(ctx context.Context) error { return second.Acquire(ctx, 1) }, func() error {
				_, err := live(t, other).Set(t.Context(), "/size", []byte("2"), -1)
				return err
			}}
		},
		"enter": func(t *testing.T, m, other *session.Manager) waiting {
			return waiting{zksync.NewDoubleBarrier(m, path, 2).Enter, func() error { return zksync.NewDoubleBarrier(other, path, 2).Enter(t.Context()) }}
		},
		"leave": func(t *testing.T, m, other *session.Manager) waiting {
			first, second := zksync.NewDoubleBarrier(other, path, 2), zksync.NewDoubleBarrier(m, path, 2)
			in := entering(t.Context(), first)
			mustEnter(t, second)
			must(t, <-in)
			return waiting{second.Leave, func() error { return first.Leave(t.Context()) }}
		},
	}
	for name, start := range cases {
		for _, op := range []zkserver.OpCode{zkserver.OpExists, zkserver.OpGetChildren2, zkserver.OpGetData} {
			t.Run(name+"/"+op.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m, other := srv.Connect(t), srv.Connect(t)
					w := start(t, m, other)
					done := background(t.Context(), w.call)
					pending(t, name, done)
					srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: op, Times: 4, Do: zksynctest.Error(-1)})
					time.Sleep(time.Minute)
					pending(t, name, done)
					must(t, w.end())
					must(t, <-done)
				})
			})
		}
	}
}
