package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Delay of a reply holds back the events of earlier watches, through all faults of the moment. An event passes a request that
// is delayed before it is carried out, as on a real server.
func TestDelayHoldsBackEvents(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		t.Run(at.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *zkserver.Server) {
				r := session(t, s, 40*time.Second)
				r.want(0, zkserver.OpGetData, watchRec("/"))
				for range 2 {
					s.Inject(zkserver.Fault{Op: zkserver.OpExists, At: at, Do: zkserver.Delay(3 * time.Second)})
				}
				begin := time.Now()
				ping := r.send(zkserver.OpPing, nil)
				xid := r.send(zkserver.OpExists, rec{}.str("/").flag(false))
				if p := r.recv(); p.xid != ping || time.Since(begin) != 0 {
					t.Fatalf("an earlier reply: xid %d after %v", p.xid, time.Since(begin))
				}
				synctest.Wait()
				if err := s.Set("/", nil); err != nil {
					t.Fatal(err)
				}
				type arrival struct {
					xid   int32
					after time.Duration
				}
				order := []arrival{{xid, 6 * time.Second}, {-1, 6 * time.Second}}
				if at == zkserver.BeforeCommit {
					order = []arrival{{-1, 0}, {xid, 6 * time.Second}}
				}
				for _, want := range order {
					if got := (arrival{r.recv().xid, time.Since(begin)}); got != want {
						t.Fatalf("%+v, want %+v", got, want)
					}
				}
			})
		})
	}
}

// A Disconnect behind a Delay loses the events that waited for the lost reply. An event that has passed a request BeforeCommit
// arrives.
func TestDisconnectBehindADelay(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		t.Run(at.String(), func(t *testing.T) {
			for range 20 {
				inBubble(t, func(t *testing.T, s *zkserver.Server) {
					r := session(t, s, 40*time.Second)
					r.want(0, zkserver.OpGetData, watchRec("/"))
					s.Inject(zkserver.Fault{Op: zkserver.OpExists, At: at, Do: zkserver.Delay(time.Second)})
					s.Inject(zkserver.Fault{Op: zkserver.OpExists, At: at, Do: zkserver.Disconnect})
					r.send(zkserver.OpExists, rec{}.str("/").flag(false))
					synctest.Wait()
					if err := s.Set("/", nil); err != nil {
						t.Fatal(err)
					}
					if at == zkserver.BeforeCommit {
						if ev := r.event(); ev != (event{3, "/"}) {
							t.Fatal(ev)
						}
					}
					r.closed()
				})
			}
		})
	}
}

// Match BeforeReply sees the code that a fault AfterCommit answers.
func TestMatchBeforeReplySeesAnErrorAfterCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		s.Inject(zkserver.Fault{Op: zkserver.OpExists, At: zkserver.AfterCommit, Do: zkserver.Error(zkserver.ErrBadVersion)})
		seen := s.Inject(zkserver.Fault{At: zkserver.BeforeReply, Match: func(op zkserver.Op) bool { return op.Err == int32(zkserver.ErrBadVersion) }})
		r.want(zkserver.ErrBadVersion, zkserver.OpExists, rec{}.str("/").flag(false))
		if n := seen.Count(); n != 1 {
			t.Fatalf("struck %d times, want 1", n)
		}
	})
}

// An Error in place of the answer to a multiRead has no record at any moment.
func TestErrorInsteadOfAMultiRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		for at := zkserver.BeforeCommit; at <= zkserver.BeforeReply; at++ {
			s.Inject(zkserver.Fault{Op: zkserver.OpMultiRead, At: at, Do: zkserver.Error(zkserver.ErrSystem)})
			r.want(zkserver.ErrSystem, zkserver.OpMultiRead, multi(sub(zkserver.OpGetData, rec{}.str("/").flag(false))))
		}
	})
}

// Behind a delayed event the server carries out later requests at once, and their replies wait.
func TestRequestsBehindADelayedEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 30*time.Second)
		r.want(0, zkserver.OpGetData, watchRec("/"))
		s.Inject(zkserver.Fault{At: zkserver.OnWatch, Do: zkserver.Delay(5 * time.Second)})
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		xid := r.send(zkserver.OpCreate, createRec("/x", "", 0))
		synctest.Wait()
		if _, there := s.Get("/x"); !there {
			t.Error("the request waits for the event")
		}
		r.silent(5*time.Second - time.Millisecond)
		if got, _ := r.until(xid); len(got) != 1 || got[0] != (event{3, "/"}) {
			t.Errorf("%v, want the delayed event ahead of the reply", got)
		}
	})
}
