package zkserver_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// three runs a test on an ensemble of three whose endpoint 3 leads. The tick is 2 s, so that the
// sync limit is 10 s.
func three(t *testing.T, test func(*testing.T, *zkserver.Server)) {
	t.Helper()
	ensemble(t, 3, zkserver.Config{}, test)
}

const syncLimit = 10 * time.Second

func existsRec(path string) rec { return rec{}.str(path).flag(false) }

// Dial connects to the endpoint that has the address, and fails with ECONNREFUSED for a stopped or unknown one.
func TestDialFindsTheEndpoint(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		if _, err := s.Dial(t.Context(), "tcp", "127.0.0.1:2184"); !errors.Is(err, syscall.ECONNREFUSED) ||
			!strings.Contains(err.Error(), "127.0.0.1:2181 to 127.0.0.1:2183") {
			t.Fatalf("%v", err)
		}
		s.Endpoint(2).Stop()
		if _, err := s.Dial(t.Context(), "tcp", "127.0.0.1:2182"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v", err)
		}
		nc, err := s.Endpoint(1).Dial(t.Context(), "tcp", "")
		if err != nil || nc.RemoteAddr().String() != "127.0.0.1:2181" {
			t.Fatalf("%v, %v", nc, err)
		}
		nc.Close()
	})
}

// A lagging endpoint catches up at a sync or a write, and delivers the events that it missed in their order.
func TestAnEndpointLags(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *zkserver.Server, *raw) []event{
		"sync": func(_ *testing.T, _ *zkserver.Server, r *raw) []event {
			got, _ := r.until(r.send(zkserver.OpSync, rec{}.str("/")))
			return got
		},
		"write": func(t *testing.T, s *zkserver.Server, r *raw) []event {
			got, _ := r.until(r.send(zkserver.OpCreate, createRec("/own", "", 0)))
			if r.stat("/own").czxid != s.Zxid() {
				t.Error("the client does not see its own write")
			}
			return got
		},
		"write of another client": func(t *testing.T, s *zkserver.Server, r *raw) []event {
			other := dialAt(t, s, 1)
			other.hello(0, 0, 0, "")
			other.welcome()
			got, _ := r.until(r.send(zkserver.OpPing, nil))
			return got
		},
		"CatchUp": func(_ *testing.T, s *zkserver.Server, r *raw) []event {
			s.Endpoint(1).CatchUp()
			got, _ := r.until(r.send(zkserver.OpPing, nil))
			return got
		},
	} {
		t.Run(name, func(t *testing.T) {
			three(t, func(t *testing.T, s *zkserver.Server) {
				r, elsewhere := at(t, s, 1, 40*time.Second), at(t, s, 2, 40*time.Second)
				for _, path := range []string{"/set", "/gone", "/dir", "/same"} {
					r.create(path, 0)
				}
				elsewhere.want(0, zkserver.OpGetData, watchRec("/set"))
				armAll(r)
				s.Endpoint(1).Lag()
				zxid := s.Zxid()
				changeAll(t, s)
				if ev := elsewhere.event(); ev != (event{3, "/set"}) {
					t.Fatalf("%v", ev)
				}
				elsewhere.stat("/new")
				if p := r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new")); p.zxid != zxid {
					t.Fatalf("zxid %#x, want %#x", p.zxid, zxid)
				}
				// A client that has seen a later zxid than the endpoint is refused there, but not
				// at other endpoints.
				late := dialAt(t, s, 1)
				late.hello(s.Zxid(), 0, elsewhere.id, elsewhere.password)
				late.closed()
				if got := end(t, s, r); !slices.Equal(got, allChanged) {
					t.Fatalf("%v, want %v", got, allChanged)
				}
				if got := s.Endpoint(1).Zxid(); got != s.Zxid() {
					t.Fatalf("zxid %#x, want %#x", got, s.Zxid())
				}
			})
		})
	}
}

// A lagging endpoint learns late that a session has ended.
func TestALaggingEndpointServesADeadSession(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		r.create("/e", 1)
		s.Endpoint(1).Lag()
		if err := s.ExpireSession(r.id); err != nil {
			t.Fatal(err)
		}
		r.stat("/e")
		r.send(zkserver.OpSetData, setRec("/e"))
		r.closed()
		if _, there := s.Get("/e"); there {
			t.Fatal("the ephemeral is still there")
		}
	})
}

// An endpoint that is cut off from its leader answers pings and reads for SyncLimit ticks while the leader expires its
// sessions.
func TestAnEndpointIsCutOffFromItsLeader(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, dies, watcher := at(t, s, 1, 40*time.Second), at(t, s, 1, 4*time.Second), at(t, s, 2, 40*time.Second)
		dies.create("/e", 1)
		watcher.want(0, zkserver.OpExists, watchRec("/e"))
		time.Sleep(7 * time.Second / 2) // the leader last heard of this session at 0 s or 1 s
		dies.want(0, zkserver.OpPing, nil)
		s.Endpoint(1).CutFromLeader()
		cut := time.Now()
		// Touches at the endpoint do not reach the leader: the session expires while its connection
		// is served.
		for range 3 {
			time.Sleep(time.Second)
			dies.want(0, zkserver.OpPing, nil)
		}
		if ev := watcher.event(); ev != (event{2, "/e"}) || time.Since(cut) > 4*time.Second {
			t.Fatalf("%v after %v: the touch just before the cut had not been reported", ev, time.Since(cut))
		}
		dies.want(0, zkserver.OpPing, nil)
		dies.stat("/e")
		if err := s.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
		// Writes and connects wait for the leader in vain.
		fresh := dialAt(t, s, 1)
		fresh.hello(0, 0, 0, "")
		r.send(zkserver.OpCreate, createRec("/lost", "", 0))
		r.send(zkserver.OpPing, nil)
		r.closed()
		if d := time.Since(cut); d != syncLimit {
			t.Fatalf("closed after %v, want %v", d, syncLimit)
		}
		fresh.closed()
		dies.closed()
		again := r.moved(s, 1)
		again.closed()
		if s.Endpoint(1).Serving() || s.Leader() != 3 {
			t.Fatal("it still serves")
		}
		if r = r.moved(s, 2).welcome(); r.id == 0 {
			t.Fatal("the session should live: its time is 40 s")
		}
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/lost"))
		s.Endpoint(1).Rejoin()
		if !s.Endpoint(1).Serving() {
			t.Fatal("it does not serve again")
		}
		r.moved(s, 1).welcome().stat("/new")
	})
}

// An endpoint that rejoins its leader before the SyncLimit closes the connections of its clients.
func TestRejoinBeforeTheSyncLimitClosesConnections(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.Endpoint(1).CutFromLeader()
		time.Sleep(time.Second)
		begin := time.Now()
		s.Endpoint(1).Rejoin()
		r.closed()
		if d := time.Since(begin); d != 0 {
			t.Fatalf("closed %v after the link was healed", d)
		}
		r.moved(s, 1).welcome().create("/a", 0)
		if zxid := s.Zxid(); zxid>>32 != 1 {
			t.Fatalf("zxid %#x: there was no reason for an election", zxid)
		}
		time.Sleep(time.Minute)
		if !s.Endpoint(1).Serving() {
			t.Fatal("it gave up although it had rejoined")
		}
	})
}

// A leader that is cut off commits nothing, answers pings and reads for SyncLimit ticks, and the other endpoints elect
// a new leader.
func TestALeaderIsCutOff(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		old, other := at(t, s, 3, 40*time.Second), at(t, s, 1, 40*time.Second)
		old.create("/a", 0)
		cut := time.Now()
		s.Endpoint(3).CutFromLeader()
		if n, err := s.Leader(), s.Create("/x", nil); n != 0 || !errors.Is(err, zkserver.ErrNotServing) {
			t.Fatalf("%d leads, %v", n, err)
		}
		for range 9 {
			time.Sleep(time.Second)
			old.want(0, zkserver.OpPing, nil)
			old.stat("/a")
			other.stat("/a")
		}
		other.send(zkserver.OpSetData, setRec("/a"))
		other.closed()
		old.closed()
		if d := time.Since(cut); d != syncLimit {
			t.Fatalf("closed after %v", d)
		}
		synctest.Wait() // endpoint 2 notices at the same instant
		if n := s.Leader(); n != 2 {
			t.Fatalf("%d leads", n)
		}
		if p := other.moved(s, 1).welcome().want(0, zkserver.OpSetData, setRec("/a")); p.zxid != 2<<32+1 {
			t.Fatalf("zxid %#x", p.zxid)
		}
		s.Endpoint(3).Rejoin()
		if v := old.moved(s, 3).welcome().stat("/a").version; v != 1 {
			t.Fatalf("version %d", v)
		}
	})
}

// A write whose client saw its connection end without an answer can have been committed, as with a real ensemble.
func TestAWriteOutlivesTheLeaderThatDidNotAnswer(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 3, 40*time.Second)
		written := zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.AfterCommit}
		for _, do := range []zkserver.Action{zkserver.Call(s.Endpoint(3).CutFromLeader), zkserver.Drop} {
			written.Do = do
			s.Inject(written)
		}
		r.send(zkserver.OpCreate, createRec("/a", "", 0))
		r.closed()
		synctest.Wait() // the other endpoints notice at the same instant
		if n := s.Leader(); n != 2 {
			t.Fatalf("%d leads", n)
		}
		r.moved(s, 1).welcome().stat("/a")
	})
}

// An endpoint whose link to the leader is cut leaves the ensemble, and returns when that link is healed.
func TestLinks(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		one, two := at(t, s, 1, 40*time.Second), at(t, s, 2, 40*time.Second)
		s.CutLink(1, 2) // without effect while 3 leads
		time.Sleep(time.Minute / 2)
		one.create("/a", 0)
		s.CutLink(3, 1)
		two.create("/b", 0)
		one.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/b"))
		one.closed()
		s.HealLink(1, 2)
		if s.Endpoint(1).Serving() {
			t.Fatal("it follows a leader that it cannot reach")
		}
		s.HealLink(1, 3)
		if !s.Endpoint(1).Serving() || s.Zxid()>>32 != 1 {
			t.Fatalf("serving %v, zxid %#x", s.Endpoint(1).Serving(), s.Zxid())
		}
		two.want(0, zkserver.OpPing, nil)
	})
}

// CutFromClients swallows everything between an endpoint and its clients until HealClients, which closes their
// connections.
func TestCutFromClients(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 20*time.Second)
		s.Endpoint(1).CutFromClients()
		r.send(zkserver.OpPing, nil)
		fresh := dialAt(t, s, 1)
		fresh.hello(0, 0, 0, "")
		fresh.silent(time.Minute)
		r.silent(time.Second)
		if len(s.Sessions()) != 0 {
			t.Fatal("the session lives on without a word")
		}
		s.Endpoint(1).HealClients()
		fresh.closed()
		r.closed()
		at(t, s, 1, 0).want(0, zkserver.OpPing, nil)
	})
}

// Followers report the touches of sessions to the leader each half tick, and the leader expires
// sessions by these reports.
func TestFollowersReportTouchesEachHalfTick(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, lead := at(t, s, 1, 4*time.Second), at(t, s, 3, 4*time.Second)
		time.Sleep(1900 * time.Millisecond)
		r.want(0, zkserver.OpPing, nil)    // the leader learns of it at 2 s: the session lives until 8 s
		lead.want(0, zkserver.OpPing, nil) // this session lives until 6 s
		synctest.Wait()
		time.Sleep(4101 * time.Millisecond)
		if list := s.Sessions(); len(list) != 1 || list[0].ID != r.id {
			t.Fatalf("%+v after 6 s, want %#x alone", list, r.id)
		}
		time.Sleep(2 * time.Second)
		if list := s.Sessions(); len(list) != 0 {
			t.Fatalf("%+v after 8 s", list)
		}
	})
}

// A follower or a leader that was frozen first handles the overdue reports when it resumes.
func TestOverdueReportsComeWithTheThaw(t *testing.T) {
	for _, frozen := range []int{1, 3} {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, 1, 4*time.Second)
			time.Sleep(100 * time.Millisecond)
			r.want(0, zkserver.OpPing, nil)
			synctest.Wait()
			s.Endpoint(frozen).Freeze()
			time.Sleep(2400 * time.Millisecond) // beyond the leader's pings at 1 s and at 2 s
			s.Endpoint(frozen).Thaw()
			synctest.Wait()
			s.Endpoint(1).CutFromLeader() // before the next ping
			time.Sleep(4 * time.Second)   // until 6.5 s: the leader learned of the session at 2.5 s
			if list := s.Sessions(); len(list) != 1 {
				t.Fatalf("with %d frozen: %+v, want that of the client until 8 s", frozen, list)
			}
			time.Sleep(2 * time.Second)
			if list := s.Sessions(); len(list) != 0 {
				t.Fatalf("with %d frozen: %+v after 8 s", frozen, list)
			}
		})
	}
}
