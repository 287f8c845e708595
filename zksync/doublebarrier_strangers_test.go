package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// strangers creates children of a barrier that belong to no participant.
func strangers(t testing.TB, srv *zksynctest.Server, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		must(t, srv.Create(fmt.Sprintf("/b/note-%d", i), nil))
	}
}

// soon fails the test if more time has passed since began than a crash may cost: a session timeout until the session
// of the participant ends, and one more until the others look.
func soon(t testing.TB, what string, began time.Time) {
	t.Helper()
	const timeout = 10 * time.Second // of a session
	if took := time.Since(began); took > 5*timeout/2 {
		t.Errorf("%s took %v beside children of other programs, with a session timeout of %v", what, took, timeout)
	}
}

// Any number of children of other programs delay no Leave after a crash, also if they were created while the others
// waited.
func TestDoubleBarrierStrangersDelayNoLeaveAfterACrash(t *testing.T) {
	for _, n := range []int{0, 100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				link := srv.NewLink(t)
				a, b := double(t, srv, 2), zksync.NewDoubleBarrier(link.Connect(t), "/b", 2)
				in := entering(t.Context(), a)
				mustEnter(t, b)
				mustEnd(t, "Enter", in, nil)
				strangers(t, srv, 0, n/2)
				out := leaving(t.Context(), a)
				time.Sleep(time.Minute)
				pending(t, "Leave while a participant is inside", out)
				strangers(t, srv, n/2, n)
				link.Cut()
				began := time.Now()
				mustEnd(t, "Leave", out, nil)
				soon(t, "Leave", began)
			})
		})
	}
}

// Any number of children of other programs delay no Leave when all participants leave.
func TestDoubleBarrierStrangersDelayNoLeave(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before Enter: ", before), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				a, b := double(t, srv, 2), double(t, srv, 2)
				if before {
					must(t, srv.Create("/b", nil))
					strangers(t, srv, 0, 100)
				}
				in := entering(t.Context(), a)
				mustEnter(t, b)
				mustEnd(t, "Enter", in, nil)
				if !before {
					strangers(t, srv, 0, 100)
				}
				began := time.Now()
				out := leaving(t.Context(), a)
				mustLeave(t, b)
				mustEnd(t, "Leave", out, nil)
				soon(t, "Leave", began)
			})
		})
	}
}

// Any number of children of other programs delay no participant behind a round whose participants have crashed.
func TestDoubleBarrierStrangersDelayNoEnter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		must(t, srv.Create("/b", nil))
		strangers(t, srv, 0, 100)
		link := srv.NewLink(t)
		mustEnter(t, zksync.NewDoubleBarrier(link.Connect(t), "/b", 1))
		link.Cut()
		began := time.Now()
		a := double(t, srv, 1)
		mustEnter(t, a)
		soon(t, "Enter", began)
		mustLeave(t, a)
	})
}

// A CountError does not count the children of other programs.
func TestDoubleBarrierCountErrorBesideStrangers(t *testing.T) {
	for _, wait := range []time.Duration{time.Second, 5 * time.Minute} {
		t.Run(wait.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				a, b := double(t, srv, 2), double(t, srv, 2)
				brief := func() context.Context {
					ctx, cancel := context.WithTimeout(t.Context(), wait)
					t.Cleanup(cancel)
					return ctx
				}
				must(t, srv.Create("/b", nil))
				strangers(t, srv, 0, 50)
				large := zksync.NewDoubleBarrier(srv.Connect(t), "/b", 200)
				wantCount(t, large.Enter(brief()), 1, 200, context.DeadlineExceeded)
				in := entering(t.Context(), a)
				mustEnter(t, b)
				mustEnd(t, "Enter", in, nil)
				strangers(t, srv, 50, 100)
				wantCount(t, large.Enter(brief()), 2, 200, context.DeadlineExceeded)
				wantCount(t, a.Leave(brief()), 1, 2, context.DeadlineExceeded)
				mustLeave(t, b)
			})
		})
	}
}

// A participant that waits behind many others lists no names while the others only come and leave, and lists their
// names once after a crash.
func TestDoubleBarrierListsNamesAfterACrashOnly(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n, leave = 300, 20
		m, link := srv.Connect(t), srv.NewLink(t)
		var in, out []<-chan error
		var all []*zksync.DoubleBarrier
		for range n - 2 {
			b := zksync.NewDoubleBarrier(m, "/b", n)
			all, in = append(all, b), append(in, entering(t.Context(), b))
		}
		in = append(in, entering(t.Context(), zksync.NewDoubleBarrier(link.Connect(t), "/b", n)))
		last := double(t, srv, n)
		mustEnter(t, last)
		for _, done := range in {
			mustEnd(t, "Enter", done, nil)
		}
		listings := func(within time.Duration) (n int) {
			srv.ResetOps()
			time.Sleep(within)
			for _, op := range requests(srv) {
				if op.Code == zkserver.OpGetChildren2 {
					n++
				}
			}
			return n
		}
		for _, b := range all[:leave] {
			out = append(out, leaving(t.Context(), b))
		}
		if got := listings(30 * time.Second); got > 0 {
			t.Errorf("%d listings without a crash, want none", got)
		}
		link.Cut()
		if got := listings(time.Minute); got > leave {
			t.Errorf("%d listings of %d participants that wait after a crash, want one each at most", got, leave)
		}
		for _, b := range all[leave:] {
			out = append(out, leaving(t.Context(), b))
		}
		mustLeave(t, last)
		for _, done := range out {
			mustEnd(t, "Leave", done, nil)
		}
	})
}
