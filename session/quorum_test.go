package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// When SyncQuorum returns, reads show everything that was committed before the call, on any path, for one
// transaction.
func TestSyncQuorumOnAnyPath(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		secret := zk.DigestACL(zk.PermAll, "a", "b")
		if _, err := s.Create(t.Context(), "/secret", nil, 0, secret...); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/", "/none", "/secret", "/none/below"} {
			before := srv.Zxid()
			srv.ResetOps()
			if err := s.SyncQuorum(t.Context(), path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if n := count(srv.Ops(), zkserver.OpMulti); n != 1 || srv.Zxid() != before+1 {
				t.Errorf("%s: %d requests and %d transactions, want one of each", path, n, srv.Zxid()-before)
			}
		}
		mustBe(t, s.SyncQuorum(t.Context(), "no path"), session.ErrInvalidPath)
	})
}

// SyncQuorum is repeated when it is throttled or its answer is lost, and fails with any refusal that was made without
// the leader, with ctx and with the session.
func TestSyncQuorumIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		for _, action := range []zkserver.Action{zkserver.Error(throttled), zkserver.Disconnect} {
			for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.BeforeReply} {
				srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Times: 3, At: at, Do: action})
				if err := s.SyncQuorum(t.Context(), "/"); err != nil {
					t.Errorf("%v %v: %v", action, at, err)
				}
			}
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Do: zkserver.Error(-102)})
		mustBe(t, s.SyncQuorum(t.Context(), "/"), zk.ErrNoAuth)
		srv.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustBe(t, s.SyncQuorum(ctx, "/"), context.DeadlineExceeded)
		srv.Thaw()
		if err := srv.ExpireSession(s.ID()); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		mustBe(t, s.SyncQuorum(t.Context(), "/"), session.ErrLost)
	})
}

// After SyncQuorum a follower that lags shows everything that was committed before the call.
func TestSyncQuorumBehindALaggingFollower(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		follower := e.Followers()[0]
		s := current(t, e.ConnectTo(t, follower))
		other := current(t, e.ConnectTo(t, e.Leader()))
		e.Lag(s.ID())
		create(t, other, "/x", 0)
		if ok, _, err := s.Exists(t.Context(), "/x"); ok || err != nil {
			t.Fatalf("the follower does not lag behind: %v, %v", ok, err)
		}
		if err := s.SyncQuorum(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if ok, _, err := s.Exists(t.Context(), "/x"); !ok || err != nil {
			t.Errorf("after SyncQuorum the follower shows an older state: %v, %v", ok, err)
		}
	})
}

// SyncQuorum does not return at a real leader that was deposed and does not know it. Such a leader answers a sync,
// and shows nothing that its successor has committed.
func TestSyncQuorumAtARealDeposedLeader(t *testing.T) {
	t.Parallel()
	// A follower that reaches the new leader too early can make both wait for initLimit: 5 ticks, not 20.
	e := zksynctest.RealZooKeeper(t, 3, zksynctest.RealTickTime(time.Second), zksynctest.RealSyncLimit(60), zksynctest.RealProperty("initLimit", "5"))
	old := e.Leader()
	s := current(t, e.ConnectTo(t, old, session.WithTimeout(20*time.Second)))
	if err := s.SyncQuorum(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	for _, follower := range e.Followers() {
		e.Cut(old, follower)
	}
	for _, follower := range []int{1, 2, 3} {
		if follower != old {
			e.Restart(follower) // so that the servers notice at once
		}
	}
	leader := e.WaitLeader(old)
	create(t, current(t, e.ConnectTo(t, leader, session.WithTimeout(20*time.Second))), "/gate", 0)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := s.Sync(ctx, "/gate"); err != nil {
		t.Fatalf("the deposed leader has noticed too early: %v", err)
	}
	if ok, _, err := s.Exists(ctx, "/gate"); ok || err != nil {
		t.Fatalf("the deposed leader shows what its successor has committed: %v, %v", ok, err)
	}
	err := s.SyncQuorum(ctx, "/gate")
	mustBe(t, err, context.DeadlineExceeded)
	e.HealAll()
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.SyncQuorum(ctx, "/gate"); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := s.Exists(ctx, "/gate"); !ok || err != nil {
		t.Errorf("after SyncQuorum: %v, %v", ok, err)
	}
}
