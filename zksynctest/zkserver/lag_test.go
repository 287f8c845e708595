package zkserver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// armAll sets watches; changeAll trips all of them except the last.
func armAll(r *raw) {
	r.want(0, zkserver.OpGetData, watchRec("/set"))
	r.want(0, zkserver.OpExists, watchRec("/gone"))
	r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/new"))
	r.want(0, zkserver.OpGetChildren, watchRec("/dir"))
	r.want(0, zkserver.OpGetData, watchRec("/same"))
}

func changeAll(t *testing.T, s *zkserver.Server) {
	t.Helper()
	for _, err := range []error{
		s.Set("/set", []byte("new")), s.Delete("/gone"), s.Create("/new", nil), s.Create("/dir/x", nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var allChanged = []event{{3, "/set"}, {2, "/gone"}, {1, "/new"}, {4, "/dir"}}

func lagging(t *testing.T, s *zkserver.Server) *raw {
	t.Helper()
	r := session(t, s, 40*time.Second)
	for _, path := range []string{"/set", "/gone", "/dir", "/same"} {
		r.create(path, 0)
	}
	return r
}

// Lag shows a session the tree as it was at the call, until a sync or a write of that session.
func TestLagShowsTheTreeAsItWas(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *zkserver.Server, *raw) ([]event, bool){
		"sync": func(t *testing.T, s *zkserver.Server, r *raw) ([]event, bool) {
			got, p := r.until(r.send(zkserver.OpSync, rec{}.str("/")))
			return got, p.zxid == s.Zxid()
		},
		"write": func(t *testing.T, s *zkserver.Server, r *raw) ([]event, bool) {
			got, p := r.until(r.send(zkserver.OpDelete, rec{}.str("/no").i32(-1)))
			return got, p.zxid == s.Zxid()
		},
		"CatchUp": func(t *testing.T, s *zkserver.Server, r *raw) ([]event, bool) {
			s.CatchUp(r.id)
			got, p := r.until(r.send(zkserver.OpPing, nil))
			return got, p.zxid == s.Zxid()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, early := range []bool{true, false} {
				inBubble(t, func(t *testing.T, s *zkserver.Server) {
					r := lagging(t, s)
					if early {
						armAll(r)
					}
					s.Lag(r.id)
					zxid := s.Zxid()
					changeAll(t, s)
					if !early {
						armAll(r)
					}
					r.want(zkserver.ErrNoNode, zkserver.OpExists, rec{}.str("/new").flag(false))
					if p := r.want(0, zkserver.OpGetData, rec{}.str("/set").flag(false)); p.zxid != zxid || p.str() != "" {
						t.Fatalf("zxid %d, want %d", p.zxid, zxid)
					}
					if names := r.want(0, zkserver.OpGetChildren, rec{}.str("/dir").flag(false)).strs(); len(names) != 0 {
						t.Fatalf("%v", names)
					}
					if n := s.WatchesOf(r.id); n != 5 {
						t.Fatalf("%d watches", n)
					}
					got, fresh := end(t, s, r)
					if !slices.Equal(got, allChanged) || !fresh {
						t.Fatalf("%v, want %v; fresh %v", got, allChanged, fresh)
					}
					// A watch that was not tripped is still armed.
					if err := s.Set("/same", nil); err != nil {
						t.Fatal(err)
					}
					if ev := r.event(); ev != (event{3, "/same"}) {
						t.Fatalf("%v", ev)
					}
				})
			}
		})
	}
}

// A lagging session still lags after a reconnect.
func TestLagOutlivesAReconnect(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := lagging(t, s)
		s.Lag(r.id)
		zxid := s.Zxid()
		changeAll(t, s)
		again := r.again(s).welcome()
		if p := again.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/new")); p.zxid != zxid {
			t.Fatalf("zxid %d", p.zxid)
		}
		got, _ := again.until(again.send(zkserver.OpSetWatches, rec{}.i64(zxid).strs("/set").strs().strs()))
		if len(got) != 0 {
			t.Fatalf("%v: the view has no news", got)
		}
		got, _ = again.until(again.send(zkserver.OpSync, rec{}.str("/")))
		if want := []event{{3, "/set"}, {1, "/new"}}; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		// The server refuses a client that has seen a later zxid than the lagging view.
		s.Lag(r.id)
		changed := s.Zxid() + 1
		if err := s.Set("/same", nil); err != nil {
			t.Fatal(err)
		}
		late := rawDial(t, s)
		late.hello(changed, 40*time.Second, r.id, r.password)
		late.closed()
	})
}

// A session that lags at an endpoint that is cut off sees new changes after it has connected to
// another endpoint.
func TestLagBehindACutEndsWithTheCut(t *testing.T) {
	ensemble(t, 3, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		r.create("/set", 0)
		s.Endpoint(1).CutFromLeader()
		s.Lag(r.id)
		changed := r.moved(s, 2).welcome()
		s.CatchUp(r.id)
		if err := s.Set("/set", []byte("new")); err != nil {
			t.Fatal(err)
		}
		if p := changed.want(0, zkserver.OpPing, nil); p.zxid != s.Zxid() {
			t.Errorf("the session sees %#x, and the ensemble is at %#x", p.zxid, s.Zxid())
		}
	})
}

// A session that is cut off from the leader gets answers to pings and to reads of an old tree, gets
// no answer to a write, and expires at the leader.
func TestCutFromLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, watcher := lagging(t, s), session(t, s, 40*time.Second)
		r.timeout = 10000
		r = r.again(s).welcome()
		r.create("/e", 1)
		armAll(r)
		watcher.want(0, zkserver.OpExists, watchRec("/e"))
		begin := time.Now()
		s.CutFromLeader(r.id, true)
		changeAll(t, s)
		for time.Since(begin) < 25*time.Second {
			time.Sleep(time.Second)
			r.want(0, zkserver.OpPing, nil)
			r.want(0, zkserver.OpExists, rec{}.str("/e").flag(false))
		}
		// A request behind a request that needs the leader is answered after it, pings included, as
		// was seen with a real follower.
		r.send(zkserver.OpSync, rec{}.str("/"))
		r.send(zkserver.OpSetData, rec{}.str("/same").str("").i32(-1))
		r.send(zkserver.OpExists, rec{}.str("/e").flag(false))
		r.send(zkserver.OpPing, nil)
		expired := time.Now()
		if ev := watcher.event(); ev != (event{2, "/e"}) || time.Since(expired) > 0 {
			t.Fatalf("%v, %v late", ev, time.Since(expired))
		}
		if n := len(s.Sessions()); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		if v := watcher.stat("/same").version; v != 0 {
			t.Fatal("a write went through the cut")
		}
		s.CutFromLeader(r.id, false)
		r.closed()
		if w := r.again(s).welcome(); w.id != 0 {
			t.Fatal("it lives")
		}
	})
}

// A session whose connection is cut off from the leader works over a new connection.
func TestCutSessionReachesTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		s.CutFromLeader(r.id, true)
		if !s.Sessions()[0].Connected {
			t.Fatal("not connected")
		}
		again := r.again(s).welcome()
		again.create("/a", 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, rec{}.str("/a").flag(false))
		if err := s.Disconnect(r.id); err != nil {
			t.Fatal(err)
		}
		r.closed()
		again.closed()
	})
}

// The lag of an endpoint affects a session that has lagged on its own before, over the same connection, and a write of that session ends
// the lag of the endpoint.
func TestEndpointLagOfASessionThatHasLagged(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, other := session(t, s, 30*time.Second), session(t, s, 30*time.Second)
		s.Lag(r.id)
		s.CatchUp(r.id)
		for _, end := range []func(){s.Endpoint(1).CatchUp, func() { r.want(0, zkserver.OpSetData, setRec("/")) }} {
			s.Endpoint(1).Lag()
			if err := s.Create("/new", nil); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*raw{r, other} {
				c.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
			}
			end()
			for _, c := range []*raw{r, other} {
				c.want(0, zkserver.OpExists, existsRec("/new"))
			}
			if err := s.Delete("/new"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The end of the lag of an endpoint does not end the lag of a session that lags on its own.
func TestTheEndOfAnEndpointLagKeepsASessionLag(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, other := session(t, s, 30*time.Second), session(t, s, 30*time.Second)
		s.Lag(r.id)
		s.Endpoint(1).Lag()
		other.create("/new", 0)
		other.want(0, zkserver.OpExists, existsRec("/new"))
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
		s.Endpoint(1).CatchUp()
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
	})
}

// The end of the lag of a session does not end the lag of its endpoint: the session sees what the endpoint shows.
func TestTheEndOfASessionLagKeepsTheEndpointLag(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 30*time.Second)
		s.Lag(r.id)
		for _, path := range []string{"/before", "/behind"} {
			if err := s.Create(path, nil); err != nil {
				t.Fatal(err)
			}
			s.Endpoint(1).Lag()
		}
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/before"))
		s.CatchUp(r.id)
		r.want(0, zkserver.OpExists, existsRec("/before"))
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/behind"))
		s.Endpoint(1).CatchUp()
		r.want(0, zkserver.OpExists, existsRec("/behind"))
	})
}

// A thaw does not end a lag of the endpoint that began during the freeze.
func TestLagOfAFrozenEndpoint(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 30*time.Second)
		s.Endpoint(1).Freeze()
		s.Endpoint(1).Lag()
		s.Endpoint(1).Thaw()
		if err := s.Create("/new", nil); err != nil {
			t.Fatal(err)
		}
		r.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/new"))
		s.Endpoint(1).CatchUp()
		r.want(0, zkserver.OpExists, existsRec("/new"))
	})
}
