package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A leader counts its followers once a tick: until then it continues, even if its followers have
// closed their connections.
func TestALeaderNoticesWithinATickThatItsFollowersAreGone(t *testing.T) {
	for name, lose := range map[string]func(*zkserver.Server){
		"reset": func(s *zkserver.Server) {
			s.Endpoint(3).CutFromLeader()
			s.Endpoint(3).Rejoin()
		},
		"stopped": func(s *zkserver.Server) {
			s.Endpoint(1).Stop()
			s.Endpoint(2).Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ensemble(t, 3, zkserver.Config{ElectionTime: 200 * time.Millisecond}, func(t *testing.T, s *zkserver.Server) {
				r := at(t, s, 3, 40*time.Second)
				time.Sleep(500 * time.Millisecond)
				begin := time.Now()
				lose(s)
				r.want(0, zkserver.OpSync, rec{}.str("/"))
				r.send(zkserver.OpSetData, setRec("/"))
				r.closed()
				if d := time.Since(begin); d != 1500*time.Millisecond {
					t.Fatalf("closed after %v, want 1.5s, when the tick of 2s ends", d)
				}
				synctest.Wait()
				if want := map[string]int{"reset": 2}[name]; s.Leader() != want {
					t.Fatalf("endpoint %d leads, want %d", s.Leader(), want)
				}
			})
		})
	}
}

// A leader that was frozen until the others gave it up still answers for up to a tick.
func TestAThawedLeaderThatWasDeposed(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, idle := at(t, s, 3, 40*time.Second), at(t, s, 3, 40*time.Second)
		s.Endpoint(3).Freeze()
		time.Sleep(syncLimit + 500*time.Millisecond)
		if n := s.Leader(); n != 2 {
			t.Fatalf("endpoint %d leads, want 2", n)
		}
		if err := s.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		s.Endpoint(3).Thaw()
		thawed := time.Now()
		r.want(0, zkserver.OpSync, rec{}.str("/"))
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
		if again := idle.moved(s, 3).welcome(); again.id != idle.id {
			t.Fatal("the deposed leader refused a session that it has")
		}
		r.send(zkserver.OpSetData, setRec("/"))
		r.closed()
		if d := time.Since(thawed); d != 1500*time.Millisecond {
			t.Fatalf("closed %v after it went on, want 1.5s, when the tick of 2s ends", d)
		}
		r.moved(s, 3).welcome().stat("/new")
	})
}

// Rejoin ends a deposition: the old leader follows the next one within a tick.
func TestADeposedLeaderRejoins(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 3, 40*time.Second)
		s.Depose()
		time.Sleep(3 * time.Second)
		s.Endpoint(3).Rejoin()
		r.want(0, zkserver.OpPing, nil)
		r.closed()
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.Leader(); n != 2 {
			t.Fatalf("endpoint %d leads, want 2", n)
		}
		if old := r.moved(s, 3).welcome(); old.id != r.id {
			t.Fatal("the session is gone")
		}
		if n := s.Depose(); n != 2 {
			t.Fatalf("endpoint %d was deposed, want 2", n)
		}
		if n := s.Leader(); n != 3 {
			t.Fatalf("endpoint %d leads, want 3", n)
		}
	})
}

// When one end of a connection is reset behind a cut, the other end does not notice, whether the
// leader or the follower is reset.
func TestAnEndThatIsResetBehindACut(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		begin := time.Now()
		s.CutLink(3, 1)
		s.ResetEnd(3, 1)
		r.want(0, zkserver.OpPing, nil)
		r.closed()
		if d := time.Since(begin); d != syncLimit {
			t.Fatalf("the follower noticed after %v, want %v", d, syncLimit)
		}
	})
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.ResetEnd(3, 1)
		r.closed()
		r.moved(s, 1).welcome().create("/a", 0) // it follows again at once
		if zxid := s.Zxid(); zxid>>32 != 1 {
			t.Fatalf("zxid %#x: there was no reason for an election", zxid)
		}
	})
}

// A follower that comes back to its leader after a restart behind a cut counts again.
func TestAFollowerComesBackAfterARestartBehindACut(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		s.CutLink(3, 1)
		if err := s.Endpoint(1).Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.HealLink(3, 1)
		if err := s.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * syncLimit)
		s.Endpoint(2).Stop()
		time.Sleep(2 * syncLimit)
		if n := s.Leader(); n != 3 || s.Zxid()>>32 != 1 {
			t.Fatalf("endpoint %d leads, zxid %#x, want 3 in its first epoch", n, s.Zxid())
		}
	})
}

// A follower behind a cut notices that its leader is gone when the link is healed.
func TestAFollowerWhoseLeaderStoppedBehindACut(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.CutLink(3, 1)
		s.Endpoint(3).Stop()
		time.Sleep(time.Second)
		r.want(0, zkserver.OpPing, nil)
		healed := time.Now()
		s.HealLink(3, 1)
		r.closed()
		if d := time.Since(healed); d != 0 {
			t.Fatalf("closed %v after the link was healed", d)
		}
		if n := s.Leader(); n != 2 {
			t.Fatalf("endpoint %d leads, want 2", n)
		}
	})
}

// Depose returns 0 without a leader of an ensemble.
func TestNobodyToDepose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		if n := s.Depose(); n != 0 {
			t.Fatalf("a server that is no ensemble deposed endpoint %d", n)
		}
		session(t, s, 0).create("/a", 0)
	})
	three(t, func(t *testing.T, s *zkserver.Server) {
		s.Stop()
		if n := s.Depose(); n != 0 {
			t.Fatalf("endpoint %d was deposed, and none led", n)
		}
	})
}
