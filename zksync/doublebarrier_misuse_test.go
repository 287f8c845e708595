package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A DoubleBarrier reports a bad path, size or option by the first call, ErrBusy for a second Enter, and ErrNotHeld for
// a Leave without Enter.
func TestDoubleBarrierMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, bad := range []struct {
			path string
			n    int
			opts []zksync.DoubleBarrierOption
			want error
			says string
		}{
			{"/b", 0, nil, zksync.ErrInvalidOption, "0 participants, want at least 1"},
			{"/b", -3, nil, zksync.ErrInvalidOption, "-3 participants"},
			{"b", 2, nil, session.ErrInvalidPath, `"b"`},
			{"/b", 2, []zksync.DoubleBarrierOption{zksync.WithID("")}, zksync.ErrInvalidOption, "WithID"},
			{"/b", 2, []zksync.DoubleBarrierOption{zksync.WithID("a/b")}, zksync.ErrInvalidOption, `"a/b"`},
			{"/b", 2, []zksync.DoubleBarrierOption{zksync.WithID("a\x00")}, zksync.ErrInvalidOption, "WithID"},
			{"/b", 2, []zksync.DoubleBarrierOption{nil}, zksync.ErrInvalidOption, "option 1 is nil"},
		} {
			b := zksync.NewDoubleBarrier(m, bad.path, bad.n, bad.opts...)
			do := func(ctx context.Context) error {
				return b.Do(ctx, func(context.Context) error { t.Error("fn was called"); return nil })
			}
			for _, call := range []func(context.Context) error{b.Enter, b.Leave, do} {
				if err := call(t.Context()); !errors.Is(err, bad.want) || !strings.Contains(err.Error(), bad.says) {
					t.Errorf("path %q, size %d: %v, want %v and %q", bad.path, bad.n, err, bad.want, bad.says)
				}
			}
		}

		a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
		if err := a.Leave(t.Context()); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Leave without Enter: %v", err)
		}
		in := entering(t.Context(), a)
		if err := a.Enter(t.Context()); !errors.Is(err, zksync.ErrBusy) {
			t.Errorf("Enter while entering: %v", err)
		}
		if err := a.Leave(t.Context()); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Leave while entering: %v", err)
		}
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		if err := a.Enter(t.Context()); !errors.Is(err, zksync.ErrBusy) {
			t.Errorf("Enter while inside: %v", err)
		}
		out := leaving(t.Context(), a)
		if err := a.Enter(t.Context()); !errors.Is(err, zksync.ErrBusy) {
			t.Errorf("Enter while leaving: %v", err)
		}
		if err := a.Leave(t.Context()); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Leave while leaving: %v", err)
		}
		mustLeave(t, b)
		mustEnd(t, "Leave", out, nil)
		if err := b.Leave(t.Context()); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Leave twice: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		srv.ResetOps()
		if err := a.Enter(ctx); !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled) || len(requests(srv)) > 0 {
			t.Errorf("Enter with a ctx that has ended: %v, %v", err, requests(srv))
		}
		wholeRound(t, srv, a, b)
	})
}

// An id that another participant uses is ErrIDInUse.
func TestDoubleBarrierID(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := zksync.NewDoubleBarrier(m, "/b", 2, zksync.WithID("a"))
		for name, b := range map[string]*zksync.DoubleBarrier{
			"in the same session": zksync.NewDoubleBarrier(m, "/b", 2, zksync.WithID("a")),
			"in another session":  double(t, srv, 2, zksync.WithID("a")),
		} {
			in := entering(t.Context(), a)
			if children, _ := srv.Children("/b"); len(children) != 1 || children[0] != "member-a" {
				t.Errorf("children %v", children)
			}
			for range 2 {
				if err := b.Enter(t.Context()); !errors.Is(err, zksync.ErrIDInUse) || !strings.Contains(err.Error(), "/b/member-a") {
					t.Errorf("the same id %s: %v", name, err)
				}
				// And once more with an answer that is lost.
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/b/member-a", Do: zksynctest.Disconnect})
			}
			pending(t, "Enter", in)
			c := double(t, srv, 2, zksync.WithID("c"))
			mustEnter(t, c)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), a)
			mustLeave(t, c)
			mustEnd(t, "Leave", out, nil)
			wholeRound(t, srv, c, b)
		}
	})
}

// Children of other programs neither fill the barrier nor keep it from being cleared, and the participants of Curator
// and kazoo count.
func TestDoubleBarrierStrangers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		other := live(t, srv.Connect(t))
		make := func(name string, flags int32) {
			if _, err := other.Create(t.Context(), "/b/"+name, nil, flags); err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.Create("/b", nil); err != nil {
			t.Fatal(err)
		}
		strangers := []string{"config", "_c_nothing", "1234", "members"}
		for _, name := range strangers {
			make(name, zk.FlagPersistent)
		}
		a, b := double(t, srv, 2), double(t, srv, 2)
		for range 2 {
			in := entering(t.Context(), a)
			time.Sleep(2 * time.Minute)
			pending(t, "Enter beside strangers", in)
			mustEnter(t, b)
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), b)
			mustLeave(t, a)
			mustEnd(t, "Leave", out, nil)
			if left, _ := srv.Children("/b"); len(left) != len(strangers) {
				t.Errorf("%v are there, want %v", left, strangers)
			}
		}
		for _, name := range []string{"0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5bd9cb469fa16570867728950e"} {
			make(name, zk.FlagEphemeral)
			mustEnter(t, a)
			out := leaving(t.Context(), a)
			time.Sleep(2 * time.Minute)
			pending(t, "Leave while a foreign participant is inside", out)
			if err := other.Delete(t.Context(), "/b/"+name, -1); err != nil {
				t.Fatal(err)
			}
			mustEnd(t, "Leave", out, nil)
		}
	})
}

// A participant that has never listed the directory finds out in time that only children of other programs are left.
func TestDoubleBarrierManyStrangers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		if err := srv.Create("/b", nil); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if err := srv.Create(fmt.Sprintf("/b/stranger-%d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		const n = 60
		a := double(t, srv, n)
		in := entering(t.Context(), a)
		m := srv.Connect(t)
		for range n - 1 {
			entering(t.Context(), zksync.NewDoubleBarrier(m, "/b", n))
		}
		mustEnd(t, "Enter", in, nil)
		m.Close()
		mustLeave(t, a)
	})
}

// A directory that holds data is refused.
func TestDoubleBarrierInADirectoryWithData(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		if err := srv.Create("/b", []byte("theirs")); err != nil {
			t.Fatal(err)
		}
		b := double(t, srv, 1)
		if err := b.Enter(t.Context()); err == nil || !strings.Contains(err.Error(), "holds data") {
			t.Errorf("Enter: %v", err)
		}
		if data, _ := srv.Get("/b"); string(data) != "theirs" {
			t.Errorf("the data is %q now", data)
		}
		if err := srv.Set("/b", nil); err != nil {
			t.Fatal(err)
		}
		wholeRound(t, srv, b)
	})
}

// Do leaves the round that it has entered, and no later round that the same value has entered meanwhile.
func TestDoubleBarrierDoLeavesItsOwnRound(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := double(t, srv, 2), double(t, srv, 2)
		in := entering(t.Context(), b)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := a.Do(ctx, func(context.Context) error {
			mustEnd(t, "Enter", in, nil)
			out := leaving(t.Context(), b)
			mustLeave(t, a) // as another goroutine may do
			mustEnd(t, "Leave", out, nil)
			in = entering(t.Context(), b)
			mustEnter(t, a)
			mustEnd(t, "Enter", in, nil)
			return nil
		})
		if !errors.Is(err, zksync.ErrNotHeld) || !strings.Contains(err.Error(), "entered again") {
			t.Errorf("Do: %v", err)
		}
		out := leaving(t.Context(), b)
		time.Sleep(2 * time.Minute)
		pending(t, "Leave while another participant is inside", out)
		mustLeave(t, a)
		mustEnd(t, "Leave", out, nil)
	})
}
