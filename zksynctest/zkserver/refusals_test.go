package zkserver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A throttled request is answered ThrottledOp and changes nothing, for each match of the fault;
// pings, closeSession and new connections are never throttled.
func TestThrottle(t *testing.T) {
	ops := map[zkserver.OpCode][]byte{
		zkserver.OpCreate:       createRec("/new", "", 0),
		zkserver.OpDelete:       rec{}.str("/a").i32(-1),
		zkserver.OpSetData:      rec{}.str("/a").str("x").i32(-1),
		zkserver.OpExists:       watchRec("/a"),
		zkserver.OpGetData:      watchRec("/a"),
		zkserver.OpGetChildren2: watchRec("/a"),
		zkserver.OpSync:         rec{}.str("/"),
		zkserver.OpMulti:        multi(sub(zkserver.OpCreate, createRec("/new", "", 0))),
		zkserver.OpSetWatches:   rec{}.i64(0).strs("/a").strs().strs(),
		zkserver.OpWhoAmI:       nil,
	}
	for _, endpoint := range []int{1, 3} {
		three(t, func(t *testing.T, s *zkserver.Server) {
			r := at(t, s, endpoint, 40*time.Second)
			r.create("/a", 0)
			zxid, dump := s.Zxid(), s.Dump()
			all := s.Inject(zkserver.Fault{Session: r.id, Times: -1, Do: zkserver.Throttle})
			for op, body := range ops {
				for range 3 {
					if p := r.want(zkserver.ErrThrottledOp, op, body); p.zxid != zxid {
						t.Errorf("%v: zxid %#x, want the latest transaction, %#x", op, p.zxid, zxid)
					}
				}
			}
			if n := all.Count(); n != 3*len(ops) {
				t.Errorf("throttled %d requests, want %d", n, 3*len(ops))
			}
			r.want(0, zkserver.OpPing, nil)
			r.want(0, zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b"))
			r = r.moved(s, endpoint).welcome()
			if s.Zxid() != zxid || s.Dump() != dump || s.Watches() != 0 {
				t.Errorf("zxid %#x, was %#x; %d watches; tree\n%s", s.Zxid(), zxid, s.Watches(), s.Dump())
			}
			r.want(0, zkserver.OpCloseSession, nil)
			r.closed()
		})
	}
}

// A Throttle with a path strikes the requests for that path, and a throttled create takes no sequence number.
func TestThrottleOfOnePath(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		inj := s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a*", Times: 2, Do: zkserver.Throttle})
		r.create("/b", 0)
		for range 2 {
			r.want(zkserver.ErrThrottledOp, zkserver.OpCreate, createRec("/a-", "", 2))
		}
		if name := r.create("/a-", 2); name != "/a-0000000001" {
			t.Errorf("%s: a throttled create has taken a number", name)
		}
		if got := inj.Fault().String(); got != "Throttle BeforeCommit of create on /a*, 2 times" {
			t.Error(got)
		}
	})
}

// A throttled request touches its session, and is not answered before an earlier
// request that waits for the leader.
func TestThrottledRequestsAreRequests(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		began := time.Now()
		r := at(t, s, 3, 4500*time.Millisecond)
		s.Inject(zkserver.Fault{Session: r.id, Times: -1, Do: zkserver.Throttle})
		time.Sleep(1600 * time.Millisecond)
		r.want(zkserver.ErrThrottledOp, zkserver.OpExists, existsRec("/"))
		if at := expiresAt(t, s, began); at != 8*time.Second {
			t.Errorf("the session expired at %v, want 8s", at)
		}
	})
	three(t, func(t *testing.T, s *zkserver.Server) {
		r, other := at(t, s, 1, 40*time.Second), at(t, s, 1, 40*time.Second)
		s.Endpoint(1).CutFromLeader()
		r.send(zkserver.OpSetData, setRec("/"))
		synctest.Wait()
		s.Inject(zkserver.Fault{Times: -1, Do: zkserver.Throttle})
		r.send(zkserver.OpExists, existsRec("/"))
		r.silent(time.Second)
		// A sync can be throttled without a leader.
		other.want(zkserver.ErrThrottledOp, zkserver.OpSync, rec{}.str("/"))
		other.want(0, zkserver.OpPing, nil)
	})
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		s.Endpoint(3).Freeze()
		s.Inject(zkserver.Fault{Times: -1, Do: zkserver.Throttle})
		r.want(zkserver.ErrThrottledOp, zkserver.OpSetData, setRec("/"))
	})
}

// A server whose session has moved to another server closes the connection instead of answering.
func TestSessionMovedClosesTheConnection(t *testing.T) {
	for _, when := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		for op, body := range map[zkserver.OpCode][]byte{zkserver.OpSetData: setRec("/"), zkserver.OpExists: existsRec("/")} {
			inBubble(t, func(t *testing.T, s *zkserver.Server) {
				r := session(t, s, 10*time.Second)
				s.Inject(zkserver.Fault{Op: op, At: when, Do: zkserver.Error(zkserver.ErrSessionMoved)})
				zxid := s.Zxid()
				r.send(op, body)
				r.closed()
				took := s.Zxid() - zxid
				if want := map[zkserver.OpCode]int64{zkserver.OpSetData: 1}[op]; took != want {
					t.Errorf("%v %v took %d transactions, want %d", op, when, took, want)
				}
				done := when != zkserver.BeforeCommit && op == zkserver.OpSetData
				again := r.again(s).welcome()
				if version := again.stat("/").version; version != 0 != done {
					t.Errorf("%v %v: version %d", op, when, version)
				}
			})
		}
	}
}

// A fault with any other error code answers with that code, also with a request timeout, which real servers do not
// send.
func TestOtherRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Times: 2, Do: zkserver.Error(zkserver.ErrRequestTimeout)})
		for range 2 {
			r.want(zkserver.ErrRequestTimeout, zkserver.OpCreate, createRec("/a", "", 0))
		}
		r.create("/a", 0)
		// A server that does not serve closes connections at their ConnectRequest.
		s.Inject(zkserver.Fault{Op: zkserver.OpConnect, Times: 2, Do: zkserver.Disconnect})
		for range 2 {
			r.again(s).closed()
		}
		if r.again(s).welcome().id != r.id {
			t.Error("the session is gone")
		}
	})
}

// Inject panics for an action at a moment at which it cannot strike, and names the right moment.
func TestFaultsThatMeanNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		for want, f := range map[string]zkserver.Fault{
			"Throttle strikes BeforeCommit, not AfterCommit":        {At: zkserver.AfterCommit, Do: zkserver.Throttle},
			"CutAfterForward strikes BeforeCommit, not BeforeReply": {At: zkserver.BeforeReply, Do: zkserver.CutAfterForward},
			"CutAfterForward strikes BeforeCommit, not OnWatch":     {At: zkserver.OnWatch, Do: zkserver.CutAfterForward},
		} {
			func() {
				defer func() {
					if said, _ := recover().(string); !strings.Contains(said, want) {
						t.Errorf("panicked with %q, want %q", said, want)
					}
				}()
				s.Inject(f)
			}()
		}
	})
}
