package zkserver_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// With CutAfterForward the leader carries out a request, and the client's server gets no answer and
// no change.
func TestCutAfterForward(t *testing.T) {
	cut := zkserver.Fault{Do: zkserver.CutAfterForward}
	t.Run("write", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r, other := at(t, s, 1, 40*time.Second), at(t, s, 1, 40*time.Second)
			cut.Op = zkserver.OpCreate
			began := time.Now()
			s.Inject(cut)
			committed := s.Inject(zkserver.Fault{Path: "/a", At: zkserver.AfterCommit})
			r.send(zkserver.OpCreate, createRec("/a", "", 0))
			r.send(zkserver.OpPing, nil)
			synctest.Wait()
			if committed.Count() != 1 {
				t.Errorf("%d faults struck after the leader had carried the request out, want 1", committed.Count())
			}
			if _, there := s.Get("/a"); !there {
				t.Fatal("the leader has not carried the request out")
			}
			if ops := s.Ops(); !ops[len(ops)-2].Done || ops[len(ops)-2].Fault != "CutAfterForward BeforeCommit, Nothing AfterCommit" {
				t.Fatalf("%v", ops)
			}
			other.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/a")) // the change did not reach this endpoint
			other.want(0, zkserver.OpPing, nil)
			r.closed()
			other.closed()
			if d := time.Since(began); d != syncLimit {
				t.Fatalf("closed after %v, want %v", d, syncLimit)
			}
			r.moved(s, 2).welcome().stat("/a")
			s.Endpoint(1).Rejoin()
			other.moved(s, 1).welcome().stat("/a")
		})
	})
	t.Run("write of a session that is about to end", func(t *testing.T) {
		ensemble(t, 3, zkserver.Config{SyncLimit: 20}, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, 1, 4*time.Second)
			s.SetThawOrder(zkserver.RequestsAfterMark)
			s.Endpoint(3).Freeze()
			cut.Op = zkserver.OpCreate
			s.Inject(cut)
			r.send(zkserver.OpCreate, createRec("/a", "", 0))
			time.Sleep(10 * time.Second)
			s.Endpoint(3).Thaw()
			time.Sleep(time.Second)
			if _, there := s.Get("/a"); there {
				t.Error("the leader has carried the request out")
			}
		})
	})
	t.Run("write to the leader", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r, other := at(t, s, 3, 40*time.Second), at(t, s, 1, 40*time.Second)
			cut.Op = zkserver.OpCreate
			s.Inject(cut)
			r.send(zkserver.OpCreate, createRec("/a", "", 0))
			synctest.Wait()
			other.want(zkserver.ErrNoNode, zkserver.OpExists, existsRec("/a")) // proposed there, but not committed
			other.closed()
			r.closed()
			synctest.Wait()
			if n := s.Leader(); n != 2 {
				t.Fatalf("endpoint %d leads, want 2", n)
			}
			if zxid := other.moved(s, 1).welcome().stat("/a").czxid; zxid>>32 != 1 {
				t.Fatalf("created by %#x, want a transaction of the old epoch", zxid)
			}
		})
	})
	t.Run("the end of a session", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, 1, 40*time.Second)
			r.create("/e", 1)
			cut.Op = zkserver.OpCloseSession
			s.Inject(cut)
			r.send(zkserver.OpCloseSession, nil)
			synctest.Wait()
			if _, there := s.Get("/e"); there || len(s.Sessions()) != 0 {
				t.Fatal("the session is still there")
			}
			r.silent(5 * time.Second)
			r.closed()
		})
	})
	t.Run("sync", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, 1, 40*time.Second)
			cut.Op = zkserver.OpSync
			zxid := s.Zxid()
			s.Inject(cut)
			r.send(zkserver.OpSync, rec{}.str("/"))
			r.send(zkserver.OpPing, nil)
			r.silent(syncLimit - time.Millisecond)
			r.closed()
			if s.Zxid() != zxid {
				t.Fatal("a sync took a zxid")
			}
		})
	})
	t.Run("read", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, 1, 40*time.Second)
			cut.Op = zkserver.OpExists
			s.Inject(cut)
			r.stat("/")
			r.send(zkserver.OpSync, rec{}.str("/"))
			r.silent(syncLimit - time.Millisecond)
			r.closed()
		})
	})
	t.Run("new session", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			cut.Op = zkserver.OpConnect
			s.Inject(cut)
			r := dialAt(t, s, 1)
			r.hello(0, 4*time.Second, 0, "")
			synctest.Wait()
			if list := s.Sessions(); len(list) != 1 || list[0].Connected {
				t.Fatalf("%+v, want a session that its client does not know of", list)
			}
			r.closed()
			if len(s.Sessions()) != 0 {
				t.Fatal("the session lives without a client")
			}
		})
	})
	t.Run("reconnect", func(t *testing.T) {
		three(t, func(t *testing.T, s *zkserver.Server) {
			began := time.Now()
			r := at(t, s, 2, 4500*time.Millisecond)
			cut.Op = zkserver.OpConnect
			s.Inject(cut)
			time.Sleep(1600 * time.Millisecond)
			again := r.moved(s, 1)
			synctest.Wait()
			// From then on the leader believes that the session belongs to endpoint 1.
			r.stat("/")
			r.send(zkserver.OpSetData, setRec("/"))
			r.closed()
			time.Sleep(7*time.Second - time.Since(began))
			if len(s.Sessions()) != 1 {
				t.Fatal("the leader did not hear of the reconnect, which makes the session good until 8s")
			}
			again.closed()
		})
	})
	t.Run("a server that is no ensemble", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *zkserver.Server) {
			r, other := session(t, s, 10*time.Second), session(t, s, 40*time.Second)
			s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Session: r.id, Do: zkserver.CutAfterForward})
			r.send(zkserver.OpCreate, createRec("/a", "", 0))
			synctest.Wait()
			other.stat("/a")
			r.silent(time.Second)
			if r.moved(s, 1).welcome().id != r.id {
				t.Fatal("the session cannot come back")
			}
			s.CutFromLeader(r.id, false)
			r.closed()
		})
	})
}

// With CutAfterForward a server refuses the requests that it refuses without the fault, and forwards none of them: operations that it
// does not know, also in a multi, and requests before the authentication that it requires.
func TestCutAfterForwardOfARefusedRequest(t *testing.T) {
	older := zkserver.Config{Without: []zkserver.OpCode{zkserver.OpCreateContainer}}
	sasl := zkserver.Config{SASLUsers: map[string]string{"a": "b"}, RequireSASL: true}
	for name, test := range map[string]struct {
		cfg  zkserver.Config
		op   zkserver.OpCode
		body []byte
		want zkserver.Code // 0 if the request is forwarded, and refused by the leader
	}{
		"unknown":          {older, zkserver.OpCreateContainer, containerRec("/c"), zkserver.ErrUnimplemented},
		"unknown in multi": {older, zkserver.OpMulti, multi(sub(zkserver.OpCreateContainer, containerRec("/c"))), 0},
		"without SASL":     {sasl, zkserver.OpCreate, createRec("/c", "", 0), zkserver.ErrSASLRequired},
	} {
		for _, i := range []int{1, 3} { // a follower and the leader
			t.Run(fmt.Sprint(name, " at ", i), func(t *testing.T) {
				ensemble(t, 3, test.cfg, func(t *testing.T, s *zkserver.Server) {
					r := at(t, s, i, 40*time.Second)
					inj := s.Inject(zkserver.Fault{Op: test.op, Do: zkserver.CutAfterForward})
					r.send(test.op, test.body)
					if test.want != 0 {
						if p := r.recv(); p.code != test.want {
							t.Errorf("%v, want %v", p.code, test.want)
						}
						r.closed()
					}
					synctest.Wait()
					if _, there := s.Get("/c"); there || inj.Count() != 1 {
						t.Errorf("the znode exists: %v; the fault struck %d times", there, inj.Count())
					}
				})
			})
		}
	}
}
