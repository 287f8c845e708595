package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// counting calls do and compares the requests that do made.
func counting(t *testing.T, srv *zksynctest.Server, what, want string, do func()) {
	t.Helper()
	srv.ResetOps()
	do()
	synctest.Wait()
	if got := names(requests(srv)); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// Set, Remove and Wait of a Barrier make one request each, and a caller that waits makes no more.
func TestBarrierCosts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		gate, other := zksync.NewBarrier(srv.Connect(t), "/gate"), zksync.NewBarrier(srv.Connect(t), "/gate")
		var waiting <-chan error
		counting(t, srv, "Set", "create", func() { must(t, gate.Set(t.Context())) })
		counting(t, srv, "Wait at a closed gate", "getData", func() {
			waiting = start(func() error { return other.Wait(t.Context()) })
		})
		counting(t, srv, "an hour of waiting", "", func() { time.Sleep(time.Hour) })
		counting(t, srv, "Remove, and who waits goes on", "delete", func() {
			must(t, gate.Remove(t.Context()))
			over(t, "Wait", waiting)
		})
		counting(t, srv, "Wait at an open gate", "getData", func() { must(t, other.Wait(t.Context())) })
	})
}

// Join and Leave make two requests, Members makes one and another one for each member, and a membership makes none.
func TestGroupCosts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		g, other := zksync.NewGroup(srv.Connect(t), "/group"), zksync.NewGroup(srv.Connect(t), "/group")
		first, err := g.Join(t.Context(), "a", nil)
		must(t, err)
		synctest.Wait()
		var second *zksync.Member
		counting(t, srv, "Join", "create exists", func() {
			second, err = other.Join(t.Context(), "b", nil)
			must(t, err)
		})
		counting(t, srv, "Members", "getChildren2 getData getData", func() {
			if all, err := g.Members(t.Context()); err != nil || len(all) != 2 {
				t.Error(all, err)
			}
		})
		counting(t, srv, "an hour of membership", "", func() { time.Sleep(time.Hour) })
		counting(t, srv, "Leave", "exists delete", func() { must(t, second.Leave()) })
		must(t, first.Leave())
	})
}
