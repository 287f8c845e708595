package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The function of NotifyGone is called once when a check finds that the znode of the lease is gone, at once if that is
// known already, and not for a znode that Own has replaced.
func TestNotifyGone(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/old", zk.FlagEphemeral)
			create(t, s, "/new", zk.FlagEphemeral)
			l := hold(t, s)
			l.Own("/old")
			calls := make(chan time.Time, 10)
			note := func() { calls <- time.Now() }
			l.NotifyGone(note)
			if replaced {
				l.Own("/new")
			}
			if err := srv.Delete("/old"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout)
			want := 1
			if replaced {
				want = 0
			}
			if n := len(calls); n != want {
				t.Fatalf("replaced %v: %d calls, want %d", replaced, n, want)
			}
			if replaced {
				return
			}
			l.NotifyGone(note)
			if n := len(calls); n != 2 {
				t.Errorf("%d calls after NotifyGone of a znode that is known to be gone, want 2", n)
			}
		})
	}
}

// The end of a hold whose owner calls Lose during the release is reported with ErrRemoved, and a release is not,
// although a check has found that the owner's own deletion was carried out.
func TestTheEndOfAReleasedLeaseIsReported(t *testing.T) {
	for _, lost := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var r events
			s := current(t, connect(t, srv, three, session.WithObserver(r.observer())))
			create(t, s, "/a", 0)
			create(t, s, "/a/x", zk.FlagEphemeral)
			l := s.Lease()
			l.Own("/a/x")
			if err := l.Grant(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.Release()
			if err := s.Delete(t.Context(), "/a/x", -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timeout) // the keeper checks the znode
			if lost {
				l.Lose()
			}
			l.End()
			ends := eventsOf[session.HoldEnded](&r)
			if len(ends) != 1 {
				t.Fatalf("%d ends were reported, want 1", len(ends))
			}
			if got := ends[0].Lost == session.ErrRemoved; got != lost || ends[0].Path != "/a" {
				t.Errorf("lost %v: reported %+v", lost, ends[0])
			}
		})
	}
}
