package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Fault OnWatch that does not wait keeps no frame from a connection that ends: the events and the replies that were queued before the
// end still arrive.
func TestFaultsOnWatchAtTheEndOfAConnection(t *testing.T) {
	for name, do := range map[string]zkserver.Action{"nothing": {}, "call": zkserver.Call(func() {}), "drop": zkserver.Drop} {
		for end, f := range map[string]func(r *raw, s *zkserver.Server){
			"closeSession": func(r *raw, _ *zkserver.Server) { r.send(zkserver.OpCloseSession, nil) },
			"expiry": func(r *raw, s *zkserver.Server) {
				if err := s.ExpireSession(r.id); err != nil {
					t.Error(err)
				}
			},
			"disconnect": func(r *raw, s *zkserver.Server) {
				s.Inject(zkserver.Fault{Op: zkserver.OpDelete, Path: "/e", At: zkserver.BeforeReply, Do: zkserver.Disconnect})
				r.send(zkserver.OpDelete, rec{}.str("/e").i32(-1))
			},
		} {
			t.Run(name+"/"+end, func(t *testing.T) {
				for range 20 { // the writer notices the end before or after it has taken the frames
					inBubble(t, func(t *testing.T, s *zkserver.Server) {
						r := session(t, s, 10*time.Second)
						r.create("/e", 1)
						r.create("/f", 1)
						r.want(0, zkserver.OpGetData, watchRec("/e"))
						r.want(0, zkserver.OpGetData, watchRec("/f"))
						inj := s.Inject(zkserver.Fault{At: zkserver.OnWatch, Path: "/e", Do: do})
						f(r, s)
						want := map[event]bool{}
						if name != "drop" {
							want[event{2, "/e"}] = true
						}
						if end != "disconnect" {
							want[event{2, "/f"}] = true
						}
						for range len(want) {
							if ev := r.event(); !want[ev] {
								t.Fatalf("%v, want one of %v", ev, want)
							}
						}
						if end == "closeSession" {
							r.recv()
						}
						r.closed()
						if inj.Count() != 1 {
							t.Errorf("struck %d times", inj.Count())
						}
					})
				}
			})
		}
	}
}

// A fault OnWatch strikes at the turn of its event: Count does not count it before, and a fault that was removed before does not strike.
func TestRemoveBeforeTheTurnOfAnEvent(t *testing.T) {
	for _, all := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *zkserver.Server) {
			r := session(t, s, 30*time.Second)
			r.want(0, zkserver.OpGetData, watchRec("/"))
			r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/x"))
			s.Inject(zkserver.Fault{At: zkserver.OnWatch, Path: "/", Do: zkserver.Delay(5 * time.Second)})
			drop := s.Inject(zkserver.Fault{At: zkserver.OnWatch, Path: "/x", Do: zkserver.Drop})
			if err := s.Set("/", nil); err != nil {
				t.Fatal(err)
			}
			if err := s.Create("/x", nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := drop.Count(); n != 0 || drop.Matched() != 1 {
				t.Fatalf("struck %d times before the turn of its event, matched %d", n, drop.Matched())
			}
			if all {
				s.RemoveFaults()
			} else {
				drop.Remove()
			}
			for _, want := range []event{{3, "/"}, {1, "/x"}} {
				if ev := r.event(); ev != want {
					t.Fatalf("%v, want %v", ev, want)
				}
			}
			if n := drop.Count(); n != 0 {
				t.Fatalf("struck %d times", n)
			}
		})
	}
}

// After a fault OnWatch that drops or disconnects, the later faults do not match the event, and so strike the next one.
func TestTwoFaultsOnWatch(t *testing.T) {
	for name, do := range map[string]zkserver.Action{"drop": zkserver.Drop, "disconnect": zkserver.Disconnect} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *zkserver.Server) {
				r := session(t, s, 30*time.Second)
				first := s.Inject(zkserver.Fault{At: zkserver.OnWatch, Path: "/", Do: do})
				second := s.Inject(zkserver.Fault{At: zkserver.OnWatch, Path: "/", Do: do})
				for n := range 2 {
					r.want(0, zkserver.OpGetData, watchRec("/"))
					if err := s.Set("/", nil); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if first.Count() != 1 || second.Count() != n || second.Matched() != n {
						t.Fatalf("event %d: the faults have struck %d and %d times, and the second fault has matched %d times",
							n+1, first.Count(), second.Count(), second.Matched())
					}
					if name == "disconnect" {
						r.closed()
						r = r.again(s).welcome()
					}
				}
			})
		})
	}
}

// A frozen server strikes no event and closes no connection. The fault strikes after the thaw.
func TestFaultsOnWatchOfAFrozenServer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 30*time.Second)
		r.want(0, zkserver.OpGetData, watchRec("/"))
		inj := s.Inject(zkserver.Fault{At: zkserver.OnWatch, Do: zkserver.Disconnect})
		s.Freeze()
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		r.silent(5 * time.Second)
		if inj.Matched() != 1 || inj.Count() != 0 {
			t.Errorf("the fault matched %d times and struck %d times during the freeze, want 1 and 0", inj.Matched(), inj.Count())
		}
		s.Thaw()
		r.closed()
		if inj.Count() != 1 {
			t.Errorf("the fault struck %d times after the thaw, want 1", inj.Count())
		}
	})
}
