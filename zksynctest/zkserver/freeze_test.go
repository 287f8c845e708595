package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A follower that is frozen for less than SyncLimit ticks catches up and keeps its clients.
func TestAFollowerIsFrozenForAWhile(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, other := at(t, s, 1, 40*time.Second), at(t, s, 2, 40*time.Second)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		s.Endpoint(1).Freeze()
		other.create("/a", 0)
		xid := r.send(zkserver.OpSetData, setRec("/a"))
		r.silent(syncLimit - time.Second)
		if list := s.Followers(); len(list) != 1 || list[0] != 2 {
			t.Fatalf("followers %v", list)
		}
		s.Endpoint(1).Thaw()
		got, p := r.until(xid)
		if len(got) != 1 || got[0] != (event{1, "/a"}) || p.code != 0 {
			t.Fatalf("%v, %v", got, p.code)
		}
		time.Sleep(20 * time.Second)
		r.want(0, zkserver.OpPing, nil) // the other endpoints have not given it up
	})
}

// The leader gives up a follower that is frozen for SyncLimit ticks, and the follower closes its
// connections when it resumes.
func TestAFollowerIsFrozenForTooLong(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, other, dies := at(t, s, 1, 40*time.Second), at(t, s, 2, 40*time.Second), at(t, s, 1, 4*time.Second)
		dies.create("/e", 1)
		s.Endpoint(1).Freeze()
		time.Sleep(syncLimit)
		other.create("/a", 0)
		other.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/e"))
		// Its connections stay open until it resumes. Then it does not notice at once that it was
		// given up.
		stale, write := r.send(zkserver.OpExists, existsRec("/a")), dies.send(zkserver.OpSetData, setRec("/e"))
		r.silent(time.Second)
		s.Endpoint(1).Thaw()
		thawed := time.Now()
		if p := r.recv(); p.xid != stale || p.code != zkserver.ErrNoNode {
			t.Fatalf("%+v", p)
		}
		dies.closed()
		r.closed()
		if d := time.Since(thawed); d <= 0 || d > time.Second {
			t.Fatalf("closed %v after it went on", d)
		}
		_ = write
		if !s.Endpoint(1).Serving() || s.Leader() != 3 {
			t.Fatal("it is no member again")
		}
		r.moved(s, 1).welcome().stat("/a")
	})
}

// A leader that is frozen for less than SyncLimit ticks stays the leader, and carries out the
// waiting requests when it resumes.
func TestALeaderIsFrozenForAWhile(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		a, b := at(t, s, 1, 40*time.Second), at(t, s, 3, 40*time.Second)
		s.Endpoint(3).Freeze()
		a.stat("/")
		a.send(zkserver.OpCreate, createRec("/a", "", 0))
		behind := a.send(zkserver.OpPing, nil)
		fresh := dialAt(t, s, 2)
		fresh.hello(0, 0, 0, "")
		a.silent(5 * time.Second)
		fresh.silent(time.Second)
		s.Endpoint(3).Thaw()
		if p := a.recv(); p.code != 0 || p.str() != "/a" {
			t.Fatalf("%v: what waited for the leader is done when it goes on", p.code)
		}
		if p := a.recv(); p.xid != behind {
			t.Fatalf("%+v", p)
		}
		if fresh.welcome().id == 0 {
			t.Fatal("no session")
		}
		b.stat("/a")
		if s.Leader() != 3 || s.Zxid()>>32 != 1 {
			t.Fatal("there was an election")
		}
	})
}

// The other endpoints give up a leader that is frozen for SyncLimit ticks, and elect another
// leader.
func TestALeaderIsFrozenForTooLong(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		a, b := at(t, s, 1, 40*time.Second), at(t, s, 3, 40*time.Second)
		idle := at(t, s, 1, 4*time.Second)
		s.Endpoint(3).Freeze()
		begin := time.Now()
		a.send(zkserver.OpCreate, createRec("/lost", "", 0))
		a.closed()
		if d := time.Since(begin); d != syncLimit {
			t.Fatalf("closed after %v", d)
		}
		idle.closed()
		synctest.Wait() // for the end of the election
		if n := s.Leader(); n != 2 || len(s.Sessions()) != 3 {
			t.Fatalf("%d leads, %d sessions: none expires without a leader", n, len(s.Sessions()))
		}
		a = a.moved(s, 1).welcome()
		a.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/lost"))
		a.create("/a", 0)
		stale := b.send(zkserver.OpExists, existsRec("/a"))
		s.Endpoint(3).Thaw()
		if p := b.recv(); p.xid != stale || p.code != zkserver.ErrNoNode {
			t.Fatalf("%+v: the old leader does not know yet", p)
		}
		b.closed()
		b.moved(s, 3).welcome().stat("/a")
	})
}

// While the whole ensemble is frozen no session expires, and after the thaw an election chooses a
// leader.
func TestEverybodyIsFrozen(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.Freeze()
		time.Sleep(time.Hour)
		if len(s.Sessions()) != 1 {
			t.Fatal("a session expired")
		}
		s.Thaw()
		leader, err := s.WaitLeader(t.Context())
		if err != nil || s.Zxid()>>32 != 2 {
			t.Fatalf("leader %d, zxid %#x, %v", leader, s.Zxid(), err)
		}
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.closed()
		r.moved(s, 1).welcome().create("/a", 0)
	})
}
