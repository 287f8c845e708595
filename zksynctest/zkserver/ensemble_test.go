package zkserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ensemble runs a test in a bubble on an ensemble of n endpoints.
func ensemble(t *testing.T, n int, cfg zkserver.Config, test func(*testing.T, *zkserver.Server)) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) {
		s, err := zkserver.NewEnsemble(cfg, n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
}

// at creates a new session on endpoint i.
func at(t testing.TB, s *zkserver.Server, i int, timeout time.Duration) *raw {
	t.Helper()
	r := dialAt(t, s, i)
	r.hello(0, timeout, 0, "")
	return r.welcome()
}

func dialAt(t testing.TB, s *zkserver.Server, i int) *raw {
	t.Helper()
	nc, err := s.Dial(t.Context(), "tcp", s.Endpoint(i).Addr())
	if err != nil {
		t.Fatal(err)
	}
	return rawOver(t, nc)
}

// moved reconnects the session of r at endpoint i.
func (r *raw) moved(s *zkserver.Server, i int) *raw {
	r.t.Helper()
	n := dialAt(r.t, s, i)
	n.hello(0, time.Duration(r.timeout)*time.Millisecond, r.id, r.password)
	return n
}

// All endpoints of an ensemble show the same tree and sessions, and session ids begin with the number of their server.
func TestAnEnsembleSharesATree(t *testing.T) {
	ensemble(t, 3, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		if s.Size() != 3 || s.Leader() != 3 || len(s.Followers()) != 2 || s.Zxid() != 1<<32 {
			t.Fatalf("size %d, leader %d, followers %v, zxid %#x", s.Size(), s.Leader(), s.Followers(), s.Zxid())
		}
		a, b := at(t, s, 1, 10*time.Second), at(t, s, 2, 10*time.Second)
		if a.id>>56 != 1 || b.id>>56 != 2 {
			t.Fatalf("session ids %#x, %#x do not begin with the number of their server", a.id, b.id)
		}
		b.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		a.create("/a", 1)
		if ev := b.event(); ev != (event{1, "/a"}) {
			t.Fatalf("%v", ev)
		}
		if zxid := b.stat("/a").czxid; zxid != 1<<32+3 {
			t.Fatalf("czxid %#x", zxid)
		}
		ops := s.Ops()
		if last := ops[len(ops)-1]; last.Endpoint != 2 || last.Session != b.id {
			t.Fatalf("%+v", last)
		}
	})
}

// NewEnsemble refuses invalid sizes, and an ensemble of one works without epochs.
func TestEnsembleSizes(t *testing.T) {
	for _, n := range []int{-1, 0, 255} {
		if _, err := zkserver.NewEnsemble(zkserver.Config{}, n); err == nil || !strings.Contains(err.Error(), "at least 1") {
			t.Errorf("%d: %v", n, err)
		}
	}
	ensemble(t, 1, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		if s.Zxid() != 0 || s.Leader() != 1 {
			t.Fatalf("zxid %d, leader %d: one server has no epochs", s.Zxid(), s.Leader())
		}
	})
}

// A new leader is elected after ElectionTime, begins a new epoch of zxids, and gives each session its full timeout.
func TestANewLeaderBeginsAnEpoch(t *testing.T) {
	cfg := zkserver.Config{ElectionTime: 300 * time.Millisecond}
	ensemble(t, 3, cfg, func(t *testing.T, s *zkserver.Server) {
		a := at(t, s, 1, 6*time.Second)
		a.create("/a", 1)
		time.Sleep(5 * time.Second)
		s.Endpoint(3).Stop()
		a.closed()
		begin := time.Now()
		// No endpoint serves during the election: connections are accepted and closed.
		between := dialAt(t, s, 1)
		between.hello(0, 0, 0, "")
		between.closed()
		if s.Leader() != 0 || s.Create("/x", nil) == nil {
			t.Fatal("there is a leader during the election")
		}
		leader, err := s.WaitLeader(t.Context(), 3)
		if err != nil || leader != 2 || time.Since(begin) != cfg.ElectionTime {
			t.Fatalf("leader %d after %v, %v", leader, time.Since(begin), err)
		}
		// Sessions have their full timeout again.
		time.Sleep(6*time.Second - time.Millisecond)
		// The followers learn of the epoch with its first transaction.
		if old, new := s.Endpoint(1).Zxid(), s.Endpoint(2).Zxid(); old != 1<<32+2 || new != 2<<32 {
			t.Fatalf("the follower is at %#x, the leader at %#x", old, new)
		}
		early := dialAt(t, s, 1)
		early.hello(2<<32, 0, a.id, a.password)
		early.closed()
		b := a.moved(s, 2).welcome()
		if b.id != a.id {
			t.Fatal("the session did not live through the election")
		}
		if p := b.want(0, zkserver.OpSetData, setRec("/a")); p.zxid != 2<<32+1 {
			t.Fatalf("zxid %#x", p.zxid)
		}
		if err := s.Endpoint(3).Start(); err != nil {
			t.Fatal(err)
		}
		if s.Leader() != 2 || !s.Endpoint(3).Serving() {
			t.Fatal("the old leader does not follow the new one")
		}
		b.want(0, zkserver.OpPing, nil) // a returning follower disturbs no client
		c := b.moved(s, 3).welcome()
		if v := c.stat("/a").version; v != 1 {
			t.Fatalf("version %d", v)
		}
	})
}

// Without a quorum nothing is written and no session expires.
func TestWithoutAQuorumTimeStandsStill(t *testing.T) {
	ensemble(t, 5, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		a := at(t, s, 1, 6*time.Second)
		a.create("/a", 1)
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		a.want(0, zkserver.OpPing, nil)
		s.Endpoint(4).Stop()
		a.closed()
		for _, i := range []int{1, 5} {
			r := a.moved(s, i)
			r.closed()
			if s.Endpoint(i).Serving() {
				t.Fatalf("endpoint %d serves", i)
			}
		}
		time.Sleep(time.Hour)
		if len(s.Sessions()) != 1 {
			t.Fatal("a session expired without a quorum")
		}
		if err := s.Endpoint(2).Start(); err != nil {
			t.Fatal(err)
		}
		if n := s.Leader(); n != 5 {
			t.Fatalf("%d leads, want 5: of 1, 2 and 5 it has seen all and has the greatest number", n)
		}
		time.Sleep(6 * time.Second)
		if a = a.moved(s, 1).welcome(); a.id == 0 {
			t.Fatal("the session had not its time again with the new leader")
		}
		a.stat("/a")
	})
}

// The endpoint with the newest transaction is elected, even if its number is lower.
func TestWhoKnowsMostIsElected(t *testing.T) {
	ensemble(t, 3, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		s.Endpoint(3).Stop() // 2 leads
		r := at(t, s, 1, 40*time.Second)
		r.create("/a", 0)
		s.Endpoint(2).Stop()
		if err := s.Endpoint(3).Start(); err != nil {
			t.Fatal(err)
		}
		if n := s.Leader(); n != 1 {
			t.Fatalf("%d leads, want 1", n)
		}
		r.moved(s, 3).welcome().stat("/a")
	})
}
