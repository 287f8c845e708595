package session_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A holder on a real follower that is cut off from its leader learns of the loss before any other client sees the
// deletion of its ephemeral. Such a follower answers reads and pings while the leader expires the sessions of its
// clients.
func TestHolderOnARealFollowerThatIsCutOff(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 3)
	leader, followers := e.Leader(), e.Followers()
	if len(followers) != 2 {
		t.Fatalf("followers %v", followers)
	}
	follower, other := followers[0], followers[1]
	open := func(server int, timeout time.Duration) *session.Session {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		m, err := session.Connect(ctx, e.Addr(server), session.WithTimeout(timeout))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return current(t, m)
	}
	observer := open(other, 40*time.Second)
	type holder struct {
		s    *session.Session
		gone <-chan zk.Event
	}
	var holders []holder
	for _, timeout := range []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second} {
		s := open(follower, timeout)
		if s.Timeout() != timeout {
			t.Fatalf("negotiated %v, want %v", s.Timeout(), timeout)
		}
		path := create(t, s, fmt.Sprint("/held-", timeout), zk.FlagEphemeral)
		hold(t, s)
		// The observer's server may not have seen the create yet.
		if err := observer.Sync(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		exists, _, gone, err := observer.ExistsW(t.Context(), path)
		if err != nil || !exists {
			t.Fatalf("%s: exists %v, error %v", path, exists, err)
		}
		holders = append(holders, holder{s, gone})
	}
	e.Cut(follower, leader)
	cut := time.Now()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, h := range holders {
		// Reads keep the connection alive for as long as the follower answers.
		wg.Go(func() {
			for h.s.Context().Err() == nil {
				h.s.Exists(h.s.Context(), "/")
			}
		})
		wg.Go(func() {
			ev := <-h.gone
			seen := time.Now()
			if ev.Type != zk.EventNodeDeleted {
				t.Errorf("T = %v: event %+v, want the removal", h.s.Timeout(), ev)
			}
			if h.s.Context().Err() == nil {
				t.Errorf("T = %v: the ephemeral went %v after the cut while its holder's context lived", h.s.Timeout(), seen.Sub(cut))
			}
			t.Logf("T = %v: the Deadline was %v after the cut, the ephemeral went after %v", h.s.Timeout(),
				h.s.Deadline().Sub(cut).Round(time.Millisecond), seen.Sub(cut).Round(time.Millisecond))
		})
	}
}

// A restart of the server within the lease costs a holder nothing.
func TestHolderOverARealRestart(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 1)
	s := current(t, e.Connect(t, session.WithTimeout(10*time.Second)))
	create(t, s, "/held", zk.FlagEphemeral)
	hold(t, s)
	before := s.Connection()
	e.Restart(1)
	ok, stat, err := s.Exists(t.Context(), "/held")
	if err != nil || !ok || stat.EphemeralOwner != s.ID() {
		t.Errorf("after the restart: %v, %+v, error %v", ok, stat, err)
	}
	if s.Err() != nil || s.Connection() == before {
		t.Errorf("error %v on connection %d, want a new connection of the same session", s.Err(), s.Connection())
	}
}

// A holder that is cut off from the only server learns of the loss before another client sees the deletion of its
// znode.
func TestHolderCutOffFromARealServer(t *testing.T) {
	t.Parallel()
	near, far := zksynctest.RealShared(t), zksynctest.RealShared(t)
	path := servers.Path(t)
	s := current(t, near.Connect(t, session.WithTimeout(4*time.Second)))
	other := current(t, far.Connect(t))
	create(t, s, path, zk.FlagEphemeral)
	hold(t, s)
	_, _, gone, err := other.ExistsW(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	near.Cut(zksynctest.Client, 1)
	<-gone
	if s.Context().Err() == nil {
		t.Error("the ephemeral went while its holder's context lived")
	}
	if late := time.Since(s.Deadline()); late < 0 {
		t.Errorf("the server gave it away %v before the Deadline", -late)
	}
	near.Heal(zksynctest.Client, 1)
}
