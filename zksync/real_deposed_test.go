package zksync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Barrier.Wait, Leader, Members and WaitSynced wait for the state as of the time of the call, also at a leader that was
// deposed and has not noticed. To see this test fail, read behind Sync instead of SyncQuorum.
func TestRealReadsAtADeposedLeader(t *testing.T) {
	t.Parallel()
	// A follower that reaches the new leader too early can make both wait for initLimit: 5 ticks, not 20.
	e := zksynctest.RealZooKeeper(t, 3, zksynctest.RealTickTime(time.Second), zksynctest.RealSyncLimit(25), zksynctest.RealProperty("initLimit", "5"))
	old := e.Leader()
	const timeout = 20 * time.Second
	connectTo := func(server int) *session.Manager { return connectReal(t, e.Addr(server), timeout) }
	// Each read has a session of its own: behind the unanswered commit of one read, the
	// connection would hold back the answer to the sync of another.
	gate, election, group, mirror := connectTo(old), connectTo(old), connectTo(old), connectTo(old)
	all, cancelAll := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancelAll()
	if _, err := zksync.NewElection(gate, "/election").Candidates(all); err != nil {
		t.Fatal(err)
	}
	tree := watch.Tree(all, mirror, "/gate")
	must(t, tree.WaitSynced(all))
	for _, follower := range e.Followers() {
		e.Cut(old, follower)
	}
	for server := 1; server <= 3; server++ {
		if server != old {
			e.Restart(server) // so that they notice at once
		}
	}
	next := connectTo(e.WaitLeader(old))
	must(t, zksync.NewBarrier(next, "/gate").Set(all))
	_, err := zksync.NewElection(next, "/election", zksync.WithID("next")).Campaign(all)
	must(t, err)
	_, err = zksync.NewGroup(next, "/group").Join(all, "next", nil)
	must(t, err)

	ctx, cancel := context.WithTimeout(all, 2*time.Second)
	defer cancel()
	for _, m := range []*session.Manager{gate, election, group, mirror} {
		s, err := m.Session(ctx)
		if err != nil {
			t.Fatalf("the deposed leader has noticed too early: %v", err)
		}
		if err := s.Sync(ctx, "/"); err != nil {
			t.Fatalf("the deposed leader has noticed too early: %v", err)
		}
		if ok, _, err := s.Exists(ctx, "/gate"); ok || err != nil {
			t.Fatalf("the deposed leader shows what its successor has committed: %v, %v", ok, err)
		}
	}
	calls := map[string]func() error{
		"Cache.WaitSynced": func() error { return tree.WaitSynced(ctx) },
		"Barrier.Wait":     func() error { return zksync.NewBarrier(gate, "/gate").Wait(ctx) },
		"Election.Leader": func() error {
			_, err := zksync.NewElection(election, "/election").Leader(ctx)
			return err
		},
		"Group.Members": func() error {
			_, err := zksync.NewGroup(group, "/group").Members(ctx)
			return err
		},
	}
	type outcome struct {
		name string
		err  error
	}
	outcomes := make(chan outcome)
	for name, call := range calls {
		go func() { outcomes <- outcome{name, call()} }()
	}
	for range calls {
		if o := <-outcomes; !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("%s at the deposed leader: %v", o.name, o.err)
		}
	}
	e.HealAll()
	ctx = all
	if c, err := zksync.NewElection(election, "/election").Leader(ctx); err != nil || c.ID != "next" {
		t.Errorf("after the ensemble is whole again: %+v, %v", c, err)
	}
	must(t, tree.WaitSynced(ctx))
	if _, ok := tree.Get("/gate"); !ok {
		t.Error("the mirror does not show the znode after WaitSynced")
	}
}
