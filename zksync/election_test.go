package zksync_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func ids(all []zksync.Candidate) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.ID)
	}
	return names
}

// campaign stands in the background and delivers the leadership context.
func campaign(t *testing.T, e *zksync.Election) <-chan context.Context {
	lead := make(chan context.Context, 1)
	go func() {
		defer close(lead)
		if ctx, err := e.Campaign(t.Context()); err == nil {
			lead <- ctx
		}
	}()
	return lead
}

// The candidate that has been there for longest leads, tokens grow, and Leader and Candidates report the order.
func TestElectionFollowsTheOrderOfArrival(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		var all []*zksync.Election
		var sessions []int64
		var leads []<-chan context.Context
		for _, id := range []string{"a", "b", "c"} {
			m := srv.Connect(t)
			e := zksync.NewElection(m, "/master", zksync.WithID(id))
			all = append(all, e)
			sessions = append(sessions, live(t, m).ID())
			leads = append(leads, campaign(t, e))
			synctest.Wait()
		}
		got, err := all[2].Candidates(t.Context())
		if err != nil || !slices.Equal(ids(got), []string{"a", "b", "c"}) {
			t.Fatalf("candidates %v, error %v", got, err)
		}
		var last int64
		for i, e := range all {
			lead := <-leads[i]
			token, ok := zksync.Token(lead)
			leader, err := all[2].Leader(t.Context())
			if err != nil || !ok || leader.Token != token || leader.ID != string(rune('a'+i)) || token <= last {
				t.Errorf("leader %+v, error %v, token %d after %d", leader, err, token, last)
			}
			last = token
			srv.ResetOps()
			if err := e.Resign(); err != nil {
				t.Error(err)
			}
			if err := context.Cause(lead); !errors.Is(err, zksync.ErrReleased) {
				t.Errorf("the context of leadership ended with %v", err)
			}
			synctest.Wait()
			for _, op := range srv.Ops() {
				if i+1 < len(all) && op.Session == sessions[i+1] {
					t.Errorf("the next leader sent %v to lead", op)
				}
			}
		}
		if _, err := all[0].Leader(t.Context()); !errors.Is(err, zksync.ErrNoLeader) {
			t.Errorf("Leader without candidates: %v", err)
		}
	})
}

// Observe reports the leader and each change, over its own losses, and the zero Candidate if there is none.
func TestElectionObserve(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		watcher := srv.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		seen := zksync.NewElection(watcher, "/master").Observe(ctx).Events()
		expect := func(id string) {
			t.Helper()
			if c := <-seen; c.ID != id {
				t.Fatalf("observed %+v, want %q", c, id)
			}
		}
		expect("")
		m := srv.Connect(t)
		a := zksync.NewElection(m, "/master", zksync.WithID("a"))
		if _, err := a.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("a")
		b := zksync.NewElection(srv.Connect(t), "/master", zksync.WithID("b"))
		won := campaign(t, b)
		synctest.Wait()
		if err := srv.ExpireSession(live(t, watcher).ID()); err != nil {
			t.Fatal(err)
		}
		if err := srv.ExpireSession(live(t, m).ID()); err != nil {
			t.Fatal(err)
		}
		expect("b")
		<-won
		if err := a.Resign(); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Resign after a loss: %v", err)
		}
		if err := b.Resign(); err != nil {
			t.Error(err)
		}
		expect("")
		cancel()
		if c, ok := <-seen; ok {
			t.Errorf("observed %+v after the end", c)
		}
	})
}

// Run gives leadership up only when its function has returned, and then returns the cause of ctx.
func TestElectionRunKeepsLeadershipUntilTheWorkReturns(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		working, finish := make(chan struct{}), make(chan struct{})
		ran := make(chan error, 1)
		e := zksync.NewElection(srv.Connect(t), "/master")
		go func() {
			ran <- e.Run(ctx, func(ctx context.Context) error {
				close(working)
				<-ctx.Done()
				<-finish
				return nil
			})
		}()
		<-working
		next := campaign(t, zksync.NewElection(srv.Connect(t), "/master"))
		cancel(stop)
		time.Sleep(time.Hour)
		select {
		case <-next:
			t.Fatal("another leads while the work goes on")
		default:
		}
		close(finish)
		if err := <-ran; !errors.Is(err, stop) || !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want the cause and the end of the ctx", err)
		}
		<-next
	})
}
