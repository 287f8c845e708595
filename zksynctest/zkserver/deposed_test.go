package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// deposals are the ways in which the leader, endpoint 3 of three, is deposed without noticing.
var deposals = map[string]func(*testing.T, *zkserver.Server){
	"Depose": func(t *testing.T, s *zkserver.Server) {
		if old := s.Depose(); old != 3 {
			t.Fatalf("endpoint %d was deposed, want 3", old)
		}
	},
	"cut and reset": func(_ *testing.T, s *zkserver.Server) {
		for i := 1; i <= 2; i++ {
			s.CutLink(3, i)
		}
		for i := 1; i <= 2; i++ {
			s.ResetEnd(i, 3)
		}
	},
	"cut and restart": func(t *testing.T, s *zkserver.Server) {
		for i := 1; i <= 2; i++ {
			s.CutLink(3, i)
		}
		for i := 1; i <= 2; i++ {
			if err := s.Endpoint(i).Restart(); err != nil {
				t.Fatal(err)
			}
		}
	},
}

// eachDeposal runs a test once for each way to depose the leader of three endpoints.
func eachDeposal(t *testing.T, test func(*testing.T, *zkserver.Server, func())) {
	t.Helper()
	for name, depose := range deposals {
		t.Run(name, func(t *testing.T) {
			three(t, func(t *testing.T, s *zkserver.Server) {
				test(t, s, func() { depose(t, s) })
			})
		})
	}
}

// A deposed leader answers requests that need no commit, and commits nothing, while the next leader
// commits.
func TestADeposedLeaderAnswersWithoutAQuorum(t *testing.T) {
	eachDeposal(t, func(t *testing.T, s *zkserver.Server, depose func()) {
		a, writer, other := at(t, s, 3, 40*time.Second), at(t, s, 3, 40*time.Second), at(t, s, 3, 40*time.Second)
		a.create("/a", 0)
		begin := time.Now()
		depose()
		if n := s.Leader(); n != 2 {
			t.Fatalf("endpoint %d leads, want 2 at once", n)
		}
		if err := s.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		a.want(0, zkserver.OpPing, nil)
		a.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
		a.want(0, zkserver.OpSync, rec{}.str("/"))
		a = a.moved(s, 3).welcome()
		if a.id == 0 {
			t.Fatal("the deposed leader refused a session that it has")
		}
		a.want(0, zkserver.OpSync, rec{}.str("/"))
		a.stat("/a")

		writer.send(zkserver.OpSetData, setRec("/a"))
		writer.send(zkserver.OpPing, nil)
		writer.silent(time.Second)
		fresh := dialAt(t, s, 3)
		fresh.hello(0, 0, 0, "")
		fresh.silent(time.Second)
		other.want(0, zkserver.OpSync, rec{}.str("/")) // a sync is answered in spite of the proposals
		// A new connection of the session waits behind the write of the old one.
		again := writer.moved(s, 3).welcome()
		if again.id != writer.id {
			t.Fatalf("session %#x, want %#x", again.id, writer.id)
		}
		again.send(zkserver.OpPing, nil)
		again.send(zkserver.OpExists, existsRec("/a"))
		again.silent(time.Second)
		writer.closed()

		for _, r := range []*raw{a, again, other, fresh} {
			r.closed()
		}
		if d := time.Since(begin); d != syncLimit {
			t.Fatalf("closed after %v, want %v", d, syncLimit)
		}
		moved := again.moved(s, 1).welcome()
		if v := moved.stat("/a").version; v != 0 {
			t.Fatalf("version %d: the write of the deposed leader was committed", v)
		}
		moved.create("/b", 0)
	})
}

// The next leader gives each session its full timeout from its own start; touches at the deposed
// leader do not count.
func TestTheNextLeaderCountsFromItsOwnStart(t *testing.T) {
	eachDeposal(t, func(t *testing.T, s *zkserver.Server, depose func()) {
		r, watcher := at(t, s, 3, 4*time.Second), at(t, s, 1, 40*time.Second)
		r.create("/e", 1)
		time.Sleep(3500 * time.Millisecond) // without a request
		begin := time.Now()
		depose()
		watcher = watcher.moved(s, 1).welcome()
		watcher.want(0, zkserver.OpExists, watchRec("/e"))
		for time.Since(begin) < 4*time.Second {
			r.want(0, zkserver.OpSync, rec{}.str("/"))
			time.Sleep(500 * time.Millisecond)
		}
		if ev := watcher.event(); ev != (event{2, "/e"}) {
			t.Fatalf("%v", ev)
		}
		if d := time.Since(begin); d <= 4*time.Second || d > 6*time.Second {
			t.Fatalf("expired after %v: its timeout is 4s, the tick 2s", d)
		}
		// The deposed leader does not know that the session has ended.
		r.want(0, zkserver.OpSync, rec{}.str("/"))
		r.stat("/e")
		if r = r.moved(s, 3).welcome(); r.id == 0 {
			t.Fatal("the deposed leader refused a session that it has")
		}
		if gone := r.moved(s, 1).welcome(); gone.id != 0 {
			t.Fatal("the next leader has the session still")
		}
	})
}

// A deposed leader knows the sessions that existed at its deposition, and ends them by its own
// clock without a transaction.
func TestTheSessionsOfADeposedLeader(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		a, dies, closes := at(t, s, 3, 40*time.Second), at(t, s, 3, 4*time.Second), at(t, s, 3, 40*time.Second)
		a.create("/a", 0)
		s.Depose()

		// A session of the next leader is refused as if it had expired, and the connection of a
		// client that has seen a later zxid is closed.
		young := at(t, s, 1, 40*time.Second)
		if got := young.moved(s, 3).welcome(); got.id != 0 {
			t.Fatal("the deposed leader has a session that began later")
		}
		young.create("/later", 0)
		seen := dialAt(t, s, 3)
		seen.hello(s.Zxid(), 40*time.Second, a.id, a.password)
		seen.closed()

		// A session that moves to the next leader also keeps its old connection.
		moved := a.moved(s, 1).welcome()
		moved.want(0, zkserver.OpSetData, setRec("/a"))
		a.want(0, zkserver.OpPing, nil)
		a.want(0, zkserver.OpSync, rec{}.str("/"))
		if v := a.stat("/a").version; v != 0 {
			t.Fatalf("version %d", v)
		}

		// The deposed leader drops connections to sessions that it has expired or closed, without
		// an answer.
		closes.send(zkserver.OpCloseSession, nil)
		synctest.Wait()
		if got := closes.moved(s, 3).welcome(); got.id != 0 {
			t.Fatal("the deposed leader took up a session that it is closing")
		}
		time.Sleep(6*time.Second + time.Millisecond)
		dies.send(zkserver.OpPing, nil)
		dies.send(zkserver.OpSync, rec{}.str("/"))
		dies.silent(time.Second)
		if got := dies.moved(s, 3).welcome(); got.id != 0 {
			t.Fatal("the deposed leader took up a session that it has expired")
		}
		if got := closes.moved(s, 2).welcome(); got.id != closes.id {
			t.Fatal("the next leader ended a session that the deposed leader closed")
		}
	})
}

// A deposed leader of five does not answer requests of its remaining followers that need a
// proposal.
func TestAFollowerOfADeposedLeader(t *testing.T) {
	ensemble(t, 5, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		r, fresh, other := at(t, s, 1, 40*time.Second), dialAt(t, s, 1), at(t, s, 1, 40*time.Second)
		left := at(t, s, 5, 40*time.Second)
		moved := left.moved(s, 1).welcome()
		begin := time.Now()
		for i := 2; i <= 4; i++ {
			s.CutLink(5, i)
			s.CutLink(1, i)
		}
		for i := 2; i <= 4; i++ {
			s.ResetEnd(i, 5)
		}
		if n := s.Leader(); n != 4 {
			t.Fatalf("endpoint %d leads, want 4", n)
		}
		left.send(zkserver.OpSync, rec{}.str("/")) // the session moved before the deposition
		left.closed()
		moved.want(0, zkserver.OpSync, rec{}.str("/"))
		r.want(0, zkserver.OpSync, rec{}.str("/")) // no proposal is outstanding
		r = r.moved(s, 1).welcome()
		r.want(0, zkserver.OpSync, rec{}.str("/"))
		fresh.hello(0, 0, 0, "")
		fresh.silent(time.Second)
		r.want(0, zkserver.OpPing, nil)
		r.send(zkserver.OpSync, rec{}.str("/")) // now a proposal is outstanding
		r.send(zkserver.OpPing, nil)
		r.silent(time.Second)
		other.want(0, zkserver.OpPing, nil)
		other.closed()
		if d := time.Since(begin); d != syncLimit {
			t.Fatalf("closed after %v, want %v, when its leader finds out", d, syncLimit)
		}
	})
}

// A deposed leader shows all that it has committed, also if it lagged before.
func TestADeposedLeaderThatLagged(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		leader := s.Leader()
		r, elsewhere := at(t, s, leader, 40*time.Second), at(t, s, 1, 40*time.Second)
		s.Endpoint(leader).Lag()
		elsewhere.create("/a", 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/a"))
		s.Depose()
		r.want(0, zkserver.OpExists, existsRec("/a"))
	})
}

// A deposed leader whose epoch has no transaction yet keeps the zxid of that epoch, so that it still serves its own clients when they
// reconnect.
func TestTheZxidOfADeposedLeaderWithoutATransaction(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.Endpoint(3).Stop() // endpoint 2 leads the next epoch
		if err := s.Endpoint(3).Start(); err != nil {
			t.Fatal(err)
		}
		leader := s.Leader()
		r = r.moved(s, leader).welcome()
		before := r.want(0, zkserver.OpPing, nil).zxid
		if before != 2<<32 {
			t.Fatalf("zxid %#x, want the beginning of epoch 2", before)
		}
		if old := s.Depose(); old != leader {
			t.Fatalf("endpoint %d was deposed, want %d", old, leader)
		}
		if after := r.want(0, zkserver.OpPing, nil).zxid; after != before {
			t.Errorf("zxid %#x after the deposition, want %#x", after, before)
		}
		again := dialAt(t, s, leader)
		again.hello(before, 40*time.Second, r.id, r.password)
		if again.welcome().id != r.id {
			t.Error("the deposed leader refused a session that it has")
		}
	})
}
