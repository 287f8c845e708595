package zkserver_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// last returns the latest operation with a code.
func last(t *testing.T, s *zkserver.Server, code zkserver.OpCode) zkserver.Op {
	t.Helper()
	ops := s.Ops()
	for _, op := range slices.Backward(ops) {
		if op.Code == code {
			return op
		}
	}
	t.Fatalf("no %v in %v", code, ops)
	return zkserver.Op{}
}

// A Fault with Match strikes exactly the requests that the predicate accepts.
func TestFaultsByPredicate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second)
		// A create inside a multi, which Op and Path cannot distinguish.
		inner := s.Inject(zkserver.Fault{Do: zkserver.Error(-1), Times: -1, Match: func(op zkserver.Op) bool {
			return slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool { return sub.Code == zkserver.OpCreate && sub.Path == "/m" })
		}})
		// A request has a result after the commit.
		exists := s.Inject(zkserver.Fault{At: zkserver.AfterCommit, Do: zkserver.Error(-4), Times: -1, Match: func(op zkserver.Op) bool {
			return op.Code == zkserver.OpCreate && op.Err == int32(zkserver.ErrNodeExists)
		}})
		check := sub(zkserver.OpCheck, rec{}.str("/").i32(-1))
		r.want(0, zkserver.OpMulti, multi(check))
		r.want(zkserver.ErrSystem, zkserver.OpMulti, multi(check, sub(zkserver.OpCreate, createRec("/m", "", 0))))
		r.create("/a", 0)
		r.want(-4, zkserver.OpCreate, createRec("/a", "", 0))
		if inner.Count() != 1 || inner.Matched() != 1 || exists.Count() != 1 || exists.Matched() != 1 {
			t.Errorf("struck %d and %d times", inner.Count(), exists.Count())
		}
		nth := s.Inject(zkserver.Fault{Op: zkserver.OpPing, Nth: 3, Do: zkserver.Error(-1)})
		for range 2 {
			r.want(0, zkserver.OpPing, nil)
		}
		if nth.Matched() != 2 || nth.Count() != 0 || nth.Fault().Nth != 3 {
			t.Errorf("matched %d, struck %d", nth.Matched(), nth.Count())
		}
		s.RemoveFaults()
		r.want(0, zkserver.OpPing, nil)
		r.want(zkserver.ErrNodeExists, zkserver.OpCreate, createRec("/a", "", 0))
	})
}

// Match sees the result of a request AfterCommit and BeforeReply, and the code of an Error AfterCommit, also if the log has dropped the
// request meanwhile.
func TestMatchOfARequestThatTheLogHasDropped(t *testing.T) {
	for _, kept := range []int{1, 100} {
		ensemble(t, 1, zkserver.Config{OpsKept: kept}, func(t *testing.T, s *zkserver.Server) {
			r, other := session(t, s, 30*time.Second), session(t, s, 30*time.Second)
			release := make(chan struct{})
			s.Inject(zkserver.Fault{Session: r.id, Op: zkserver.OpExists, Do: zkserver.Hold(release)})
			began := time.Now()
			match := func(code zkserver.Code) func(zkserver.Op) bool {
				return func(op zkserver.Op) bool { return op.Done && op.Err == int32(code) && op.Time.Equal(began) }
			}
			after := s.Inject(zkserver.Fault{
				Session: r.id, Op: zkserver.OpExists, At: zkserver.AfterCommit, Match: match(zkserver.ErrNoNode), Do: zkserver.Error(-4),
			})
			before := s.Inject(zkserver.Fault{
				Session: r.id, Op: zkserver.OpExists, At: zkserver.BeforeReply, Match: match(-4), Do: zkserver.Drop,
			})
			r.send(zkserver.OpExists, existsRec("/none"))
			time.Sleep(time.Second)
			other.want(0, zkserver.OpPing, nil) // the log keeps one operation
			close(release)
			synctest.Wait()
			if after.Count() != 1 || before.Count() != 1 {
				t.Errorf("OpsKept %d: struck %d times AfterCommit and %d times BeforeReply, want 1", kept, after.Count(), before.Count())
			}
		})
	}
}

// A Fault with Endpoint strikes only requests and watch events at that endpoint.
func TestFaultsAtOneEndpoint(t *testing.T) {
	ensemble(t, 3, zkserver.Config{}, func(t *testing.T, s *zkserver.Server) {
		a, b := at(t, s, 1, 10*time.Second), at(t, s, 2, 10*time.Second)
		b.want(0, zkserver.OpGetData, watchRec("/"))
		a.want(0, zkserver.OpGetData, watchRec("/"))
		s.Inject(zkserver.Fault{Endpoint: 2, Times: -1, Do: zkserver.Error(-1)})
		s.Inject(zkserver.Fault{Endpoint: 2, Times: -1, At: zkserver.OnWatch, Do: zkserver.Drop})
		a.want(0, zkserver.OpPing, nil)
		b.want(zkserver.ErrSystem, zkserver.OpPing, nil)
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		if got := a.event(); got != (event{3, "/"}) {
			t.Errorf("%v", got)
		}
		b.silent(time.Second)
	})
}

// A Fault with Times above one strikes each request once at its moment.
func TestAFaultStrikesARequestOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		calls := 0
		faults := []*zkserver.Injection{
			s.Inject(zkserver.Fault{Op: zkserver.OpPing, Times: -1, Do: zkserver.Delay(time.Second)}),
			s.Inject(zkserver.Fault{Op: zkserver.OpPing, Times: -1, Do: zkserver.Call(func() { calls++ })}),
			s.Inject(zkserver.Fault{Op: zkserver.OpPing, Times: -1, At: zkserver.AfterCommit, Do: zkserver.Delay(time.Second)}),
			s.Inject(zkserver.Fault{Op: zkserver.OpPing, Times: -1, At: zkserver.BeforeReply, Do: zkserver.Delay(time.Second)}),
		}
		for n := range 3 {
			begin := time.Now()
			r.want(0, zkserver.OpPing, nil)
			if d := time.Since(begin); d != 3*time.Second || calls != n+1 {
				t.Fatalf("ping %d took %v, called %d times", n, d, calls)
			}
			for _, inj := range faults {
				if inj.Matched() != n+1 || inj.Count() != n+1 {
					t.Fatalf("%v: matched %d, struck %d at ping %d", inj.Fault(), inj.Matched(), inj.Count(), n)
				}
			}
		}
	})
}

// Faults that strike the same request act in the order of their injection. TestFaultsComposeInOrder
// injects several faults at one moment and several at the next.
func TestFaultsComposeInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second)
		var order []string
		note := func(name string) zkserver.Action { return zkserver.Call(func() { order = append(order, name) }) }
		inject := func(at zkserver.Moment, do zkserver.Action) *zkserver.Injection {
			return s.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: at, Do: do})
		}
		inject(zkserver.BeforeReply, note("before the reply"))
		inject(zkserver.AfterCommit, zkserver.Delay(time.Second))
		inject(zkserver.AfterCommit, note("after the delay"))
		inject(zkserver.BeforeCommit, note("first"))
		inject(zkserver.BeforeCommit, zkserver.Delay(2*time.Second))
		inject(zkserver.BeforeReply, zkserver.Error(-1))
		inject(zkserver.BeforeReply, zkserver.Error(-2)) // the later error wins
		begin := time.Now()
		r.want(zkserver.ErrRuntimeInconsistency, zkserver.OpCreate, createRec("/a", "", 0))
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("took %v", d)
		}
		if want := []string{"first", "after the delay", "before the reply"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		want := "Call BeforeCommit, Delay(2s) BeforeCommit, Delay(1s) AfterCommit, Call AfterCommit, " +
			"Call BeforeReply, Error(-1) BeforeReply, Error(-2) BeforeReply"
		if op := last(t, s, zkserver.OpCreate); op.Fault != want || op.Err != -2 || !op.Done {
			t.Errorf("%v", op)
		}
		// A dropped request does not match further faults.
		inject(zkserver.BeforeCommit, zkserver.Drop)
		never := inject(zkserver.BeforeCommit, note("never"))
		r.send(zkserver.OpCreate, createRec("/b", "", 0))
		r.want(0, zkserver.OpPing, nil)
		if op := last(t, s, zkserver.OpCreate); op.Fault != "Drop BeforeCommit" || op.Done || never.Count() != 0 {
			t.Errorf("%v, struck %d times", op, never.Count())
		}
	})
}

// Ops lists a watch event that a fault struck, with the fault, and no other watch events.
func TestWatchEventsThatWereStruckAreInOps(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 20*time.Second)
		for _, path := range []string{"/lost", "/late", "/plain"} {
			r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec(path))
		}
		s.Inject(zkserver.Fault{Path: "/lost", At: zkserver.OnWatch, Do: zkserver.Drop})
		s.Inject(zkserver.Fault{At: zkserver.OnWatch, Do: zkserver.Delay(time.Second), Match: func(op zkserver.Op) bool {
			return op.Code == zkserver.OpWatchEvent && op.Event == zkserver.EventCreated && op.Path == "/late" && op.Session == r.id
		}})
		s.ResetOps()
		for _, path := range []string{"/lost", "/late", "/plain"} {
			if err := s.Create(path, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []event{{1, "/late"}, {1, "/plain"}} {
			if got := r.event(); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		}
		synctest.Wait()
		var lines []string
		for _, op := range s.Ops() {
			_, line, _ := strings.Cut(op.String(), "Node")
			lines = append(lines, line)
		}
		want := []string{"Created /lost: not sent [Drop OnWatch]", "Created /late: sent zxid 0x3 [Delay(1s) OnWatch]"}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	})
}

// An Op prints as one line with its time, connection, session, request, result and the faults that struck it.
func TestOpInWords(t *testing.T) {
	when := time.Date(2026, 1, 2, 12, 0, 1, 5e8, time.UTC)
	for want, op := range map[string]zkserver.Op{
		"12:00:01.500 conn 2 session 0x1f xid 7 create /a: ok zxid 0x9 [Disconnect AfterCommit]": {
			Session: 0x1f, Endpoint: 1, Conn: 2, Xid: 7, Code: zkserver.OpCreate, Path: "/a", Zxid: 9, Done: true, Fault: "Disconnect AfterCommit",
		},
		"12:00:01.500 endpoint 3 conn 1 connect: session expired zxid 0x0": {
			Endpoint: 3, Conn: 1, Code: zkserver.OpConnect, Err: -112, Done: true,
		},
		"12:00:01.500 conn 1 xid -2 ping: nothing done": {Conn: 1, Xid: -2, Code: zkserver.OpPing},
		"12:00:01.500 conn 1 xid 1 multi {delete /a (no node), check / (runtime inconsistency)}: ok zxid 0x3": {
			Conn: 1, Xid: 1, Code: zkserver.OpMulti, Zxid: 3, Done: true,
			Sub: []zkserver.SubOp{{Code: zkserver.OpDelete, Path: "/a", Err: -101}, {Code: zkserver.OpCheck, Path: "/", Err: -2}},
		},
		"12:00:01.500 conn 1 xid 1 op 77: unimplemented zxid 0xffffffffffffffff": {
			Conn: 1, Xid: 1, Code: 77, Err: -6, Zxid: -1, Done: true,
		},
		"12:00:01.500 conn 1 session 0x2 NodeChildrenChanged /: not sent [Drop OnWatch]": {
			Session: 2, Conn: 1, Xid: -1, Code: zkserver.OpWatchEvent, Path: "/", Event: zkserver.EventChildrenChanged, Fault: "Drop OnWatch",
		},
	} {
		op.Time = when
		if got := op.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A Fault prints its action, its moment, and the requests that it strikes.
func TestFaultInWords(t *testing.T) {
	for want, f := range map[string]zkserver.Fault{
		"Nothing BeforeCommit": {},
		"Error(-4) AfterCommit of create on /a of session 0x1f at endpoint 2 if it matches from match 3 on, 2 times": {
			Session: 0x1f, Endpoint: 2, Op: zkserver.OpCreate, Path: "/a", Nth: 3, Times: 2, At: zkserver.AfterCommit,
			Do: zkserver.Error(-4), Match: func(zkserver.Op) bool { return true },
		},
		"Drop OnWatch, always": {Times: -1, At: zkserver.OnWatch, Do: zkserver.Drop},
	} {
		if got := f.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
