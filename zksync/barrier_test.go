package zksync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A gate is closed from Set to Remove, for all processes, and setting or removing it twice is no error.
func TestBarrier(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m, other := srv.Connect(t), srv.Connect(t)
		path := servers.Path(t) + "/app/gate"
		a, b := zksync.NewBarrier(m, path), zksync.NewBarrier(other, path)
		must := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Error(what, err)
			}
		}
		for range 2 {
			must("Remove where there is none:", a.Remove(t.Context()))
			must("Wait where there is none:", b.Wait(t.Context()))
			must("Set:", a.Set(t.Context()))
			must("Set again:", b.Set(t.Context()))
			ok, stat, err := live(t, m).Exists(t.Context(), path)
			if err != nil || !ok || stat.EphemeralOwner != 0 {
				t.Errorf("the gate is %+v, error %v, want a persistent znode", stat, err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errEnough)
			defer cancel()
			if err := b.Wait(ctx); !errors.Is(err, errEnough) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait at a closed gate: %v", err)
			}
			done := make(chan error)
			go func() { done <- b.Wait(t.Context()) }()
			must("Remove:", a.Remove(t.Context()))
			must("Wait:", <-done)
		}
	})
}

// A gate stays closed when the process that set it has gone, and Wait outlives lost sessions.
func TestBarrierWaitOutlivesSessions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		gate, keeper := zksync.NewBarrier(m, "/gate"), srv.Connect(t)
		if err := zksync.NewBarrier(keeper, "/gate").Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		keeper.Close() // the gate stays closed
		waiting := started(t.Context(), gate.Wait)
		for range 3 {
			if err := srv.ExpireSession(live(t, m).ID()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			pending(t, "Wait", waiting)
			srv.Disconnect(live(t, m).ID())
			time.Sleep(time.Minute)
			pending(t, "Wait", waiting)
		}
		if err := srv.Set("/gate", []byte("a note")); err != nil {
			t.Fatal(err)
		}
		pending(t, "Wait after a change of the data", waiting)
		if err := srv.Delete("/gate"); err != nil {
			t.Fatal(err)
		}
		mustEnd(t, "Wait", waiting, nil)
	})
}

// A gate that was open for a moment lets every caller through that waited.
func TestBarrierSetAgainRightAfter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		gate := zksync.NewBarrier(m, "/gate")
		if err := gate.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, hide := range map[string]func(id int64){
			"while it is connected":     func(int64) {},
			"while it is not":           srv.Partition,
			"while its session expires": func(id int64) { srv.Partition(id); srv.ExpireSession(id) },
		} {
			waiting := started(t.Context(), gate.Wait)
			id := live(t, m).ID()
			hide(id)
			if err := errors.Join(srv.Delete("/gate"), srv.Create("/gate", nil)); err != nil {
				t.Fatal(err)
			}
			srv.Heal(id)
			mustEnd(t, "Wait for a gate that was open "+name, waiting, nil)
		}
	})
}

// Wait reports the gate as of the time of the call, also at a server that lags.
func TestBarrierWaitIsNotStale(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		srv.Lag(live(t, m).ID())
		if err := zksync.NewBarrier(srv.Connect(t), "/gate").Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiting := started(t.Context(), zksync.NewBarrier(m, "/gate").Wait)
		pending(t, "Wait", waiting)
		srv.Delete("/gate")
		mustEnd(t, "Wait", waiting, nil)
	})
}

// Set and Remove are repeated over lost connections and sessions.
func TestBarrierLostAnswers(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		for _, expires := range []bool{false, true} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				gate := zksync.NewBarrier(m, "/gate")
				for _, op := range []zksynctest.OpCode{zkserver.OpCreate, zkserver.OpDelete} {
					first := live(t, m)
					fault := zksynctest.Fault{Op: op, Times: 3, At: at, Do: zksynctest.Disconnect}
					if expires {
						fault = zksynctest.Fault{Op: op, Session: first.ID(), At: at, Do: zkserver.Call(func() { _ = srv.ExpireSession(first.ID()) })}
					}
					lost := srv.Inject(fault)
					do := gate.Set
					if op == zkserver.OpDelete {
						do = gate.Remove
					}
					if err := do(t.Context()); err != nil || lost.Count() == 0 {
						t.Errorf("%v %v: %v, %d answers lost", op, at, err, lost.Count())
					}
					if expires && first.Context().Err() == nil {
						t.Errorf("%v %v: the session was not lost", op, at)
					}
					lost.Remove()
					if _, closed := srv.Get("/gate"); closed != (op == zkserver.OpCreate) {
						t.Errorf("%v %v: the gate is closed: %v", op, at, closed)
					}
				}
			})
		}
	}
}

// A Set or a Remove whose answer is lost changes a gate again that another client has changed meanwhile, as the
// documentation of Remove says. Both report success.
func TestBarrierRepeatsOverTheChangeOfAnotherClient(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		gate := zksync.NewBarrier(m, "/gate")
		must(t, gate.Set(t.Context())) // the session is known from here on
		must(t, gate.Remove(t.Context()))
		for _, c := range []struct {
			op     zksynctest.OpCode
			do     func(context.Context) error
			other  func() error
			closed bool
		}{
			{zkserver.OpCreate, gate.Set, func() error { return srv.Delete("/gate") }, true},
			{zkserver.OpDelete, gate.Remove, func() error { return srv.Create("/gate", nil) }, false},
		} {
			var changed error
			for _, action := range []zksynctest.Action{zksynctest.Call(func() { changed = c.other() }), zksynctest.Disconnect} {
				srv.Inject(zksynctest.Fault{Op: c.op, Session: live(t, m).ID(), At: zksynctest.AfterCommit, Do: action})
			}
			must(t, c.do(t.Context()))
			must(t, changed)
			if _, closed := srv.Get("/gate"); closed != c.closed {
				t.Errorf("%v: the gate is closed: %v", c.op, closed)
			}
		}
	})
}

// The first call of a Barrier reports a bad path or option, WithMaxWait bounds Wait, and every call after Close of the
// Manager is ErrClosed.
func TestBarrierMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, bad := range []struct {
			gate *zksync.Barrier
			want error
			says string
		}{
			{zksync.NewBarrier(m, "gate"), session.ErrInvalidPath, `"gate"`},
			{zksync.NewBarrier(m, "/"), session.ErrInvalidPath, "always exists"},
			{zksync.NewBarrier(m, "/gate", zksync.WithMaxWait(0)), zksync.ErrInvalidOption, "WithMaxWait: 0s"},
		} {
			for _, call := range []func(context.Context) error{bad.gate.Set, bad.gate.Remove, bad.gate.Wait} {
				if err := call(t.Context()); !errors.Is(err, bad.want) || !strings.Contains(err.Error(), bad.says) {
					t.Errorf("%v, want %v and %q", err, bad.want, bad.says)
				}
			}
		}
		gate := zksync.NewBarrier(m, "/gate", zksync.WithMaxWait(time.Hour))
		if err := gate.Set(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := gate.Wait(t.Context()); !errors.Is(err, zksync.ErrMaxWait) {
			t.Errorf("Wait: %v", err)
		}
		synctest.Wait()
		if n := srv.WatchesOf(live(t, m).ID()); n > 1 {
			t.Errorf("%d watches are left", n)
		}
		waiting := started(t.Context(), gate.Wait)
		m.Close()
		mustEnd(t, "Wait when the Manager is closed", waiting, zksync.ErrClosed)
		for _, call := range []func(context.Context) error{gate.Set, gate.Remove, gate.Wait} {
			if err := call(t.Context()); !errors.Is(err, zksync.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	})
}

// Set of a closed gate and Remove of an open one need no permission, and all else does.
func TestBarrierWithoutPermissionWhereNothingIsToDo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		st.deny(zk.PermCreate|zk.PermDelete, "/stage")
		theirs, gate := zksync.NewBarrier(st.other, "/stage/gate"), zksync.NewBarrier(st.m, "/stage/gate")
		must(t, gate.Remove(t.Context()))
		mustBe(t, gate.Set(t.Context()), zk.ErrNoAuth, "set", "/stage/gate")
		must(t, theirs.Set(t.Context()))
		must(t, gate.Set(t.Context()))
		mustBe(t, gate.Remove(t.Context()), zk.ErrNoAuth, "remove", "/stage/gate")
	})
}
