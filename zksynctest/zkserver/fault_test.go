package zkserver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Drop and Disconnect strike at the moment that the Fault names: before or after the commit, or before the reply.
func TestDropAndDisconnectAtEachMoment(t *testing.T) {
	for _, c := range []struct {
		at     zkserver.Moment
		do     zkserver.Action
		done   bool // the create is carried out
		closed bool
	}{
		{zkserver.BeforeCommit, zkserver.Drop, false, false},
		{zkserver.AfterCommit, zkserver.Drop, true, false},
		{zkserver.BeforeReply, zkserver.Drop, true, false},
		{zkserver.BeforeCommit, zkserver.Disconnect, false, true},
		{zkserver.AfterCommit, zkserver.Disconnect, true, true},
		{zkserver.BeforeReply, zkserver.Disconnect, true, true},
	} {
		t.Run(c.do.String()+c.at.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *zkserver.Server) {
				r := session(t, s, 0)
				inj := s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/x", At: c.at, Do: c.do})
				ping := r.send(zkserver.OpPing, nil)
				r.send(zkserver.OpCreate, createRec("/x", "", 0))
				if p := r.recv(); p.xid != ping {
					t.Fatalf("%+v", p)
				}
				<-inj.Fired()
				if c.closed {
					r.closed()
				} else {
					r.want(0, zkserver.OpPing, nil)
				}
				if _, done := s.Get("/x"); done != c.done || inj.Count() != 1 {
					t.Fatalf("done %v, struck %d times", done, inj.Count())
				}
				for _, op := range s.Ops() {
					if op.Code == zkserver.OpCreate && (op.Done != c.done || op.Fault != c.do.String()+" "+c.at.String()) {
						t.Fatalf("%+v", op)
					}
				}
			})
		})
	}
}

// An Error replaces the answer: before the commit the request is not carried out, after the commit it is.
func TestErrorInsteadOfTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		s.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeCommit, Do: zkserver.Error(-1)})
		r.want(zkserver.ErrSystem, zkserver.OpCreate, createRec("/x", "", 0))
		if _, done := s.Get("/x"); done {
			t.Fatal("done all the same")
		}
		s.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.AfterCommit, Do: zkserver.Error(-1)})
		r.want(zkserver.ErrSystem, zkserver.OpCreate, createRec("/x", "", 0))
		if _, done := s.Get("/x"); !done {
			t.Fatal("not done")
		}
		ops := s.Ops()
		if last := ops[len(ops)-1]; last.Err != -1 || !last.Done {
			t.Fatalf("%+v", last)
		}
	})
}

// A Fault strikes the requests that its fields select, beginning with match Nth, Times times.
func TestNthTimesAndMatching(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		a, b := session(t, s, 0), session(t, s, 0)
		no := zkserver.Error(-1)
		hits := func(f zkserver.Fault, asks func()) int {
			t.Helper()
			f.Do, f.Times = no, max(f.Times, -1)
			inj := s.Inject(f)
			defer inj.Remove()
			asks()
			return inj.Count()
		}
		exists := func(r *raw, paths ...string) {
			for _, path := range paths {
				r.call(zkserver.OpExists, rec{}.str(path).flag(false))
			}
		}
		for name, c := range map[string]struct {
			f    zkserver.Fault
			asks func()
			want int
		}{
			"nth":        {zkserver.Fault{Nth: 3, Times: 2}, func() { exists(a, "/", "/", "/", "/", "/", "/") }, 2},
			"for ever":   {zkserver.Fault{Nth: 2, Times: -1}, func() { exists(a, "/", "/", "/", "/") }, 3},
			"session":    {zkserver.Fault{Session: b.id, Times: -1}, func() { exists(a, "/"); exists(b, "/", "/") }, 2},
			"op":         {zkserver.Fault{Op: zkserver.OpPing, Times: -1}, func() { exists(a, "/"); a.call(zkserver.OpPing, nil) }, 1},
			"exact path": {zkserver.Fault{Path: "/a", Times: -1}, func() { exists(a, "/", "/a", "/a/b") }, 1},
			"prefix":     {zkserver.Fault{Path: "/a*", Times: -1}, func() { exists(a, "/", "/a", "/a/b", "/abc") }, 3},
			"no path":    {zkserver.Fault{Path: "*", Times: -1}, func() { a.call(zkserver.OpPing, nil); exists(a, "/") }, 1},
			"in a multi": {zkserver.Fault{Path: "/q/s-", Times: -1}, func() {
				a.call(zkserver.OpMulti, multi(
					sub(zkserver.OpCheck, rec{}.str("/").i32(-1)),
					sub(zkserver.OpCreate, createRec("/q/s-", "", 2))))
			}, 1},
			"in setWatches": {zkserver.Fault{Path: "/w", Times: -1}, func() {
				a.call(zkserver.OpSetWatches, rec{}.i64(0).strs().strs("/w").strs())
			}, 1},
		} {
			if got := hits(c.f, c.asks); got != c.want {
				t.Errorf("%s: struck %d times, want %d", name, got, c.want)
			}
		}
	})
}

// A Delay holds back all frames of its connection and no frames of other connections.
func TestDelayHoldsBackTheWholeConnection(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.AfterCommit, zkserver.BeforeReply} {
		t.Run(at.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *zkserver.Server) {
				r, other := session(t, s, 40*time.Second), session(t, s, 40*time.Second)
				s.Inject(zkserver.Fault{Session: r.id, Op: zkserver.OpGetData, At: at, Do: zkserver.Delay(3 * time.Second)})
				begin := time.Now()
				first := r.send(zkserver.OpGetData, watchRec("/"))
				second := r.send(zkserver.OpPing, nil)
				synctest.Wait()
				other.want(0, zkserver.OpSetData, rec{}.str("/").str("new").i32(-1))
				if d := time.Since(begin); d != 0 {
					t.Fatalf("another connection waited for %v", d)
				}
				// The event must not overtake the reply that arms the watch.
				p := r.recv()
				if p.xid != first || time.Since(begin) != 3*time.Second {
					t.Fatalf("xid %d after %v", p.xid, time.Since(begin))
				}
				if data := p.str(); (data == "new") != (at == zkserver.BeforeCommit) {
					t.Fatalf("read %q", data)
				}
				if at != zkserver.BeforeCommit {
					if ev := r.event(); ev != (event{3, "/"}) {
						t.Fatalf("%v", ev)
					}
				}
				if p := r.recv(); p.xid != second {
					t.Fatalf("%+v", p)
				}
			})
		})
	}
}

// Hold stops the connection until its channel is closed, and Call calls its function at the moment of the fault.
func TestHoldAndCall(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		until := make(chan struct{})
		inj := s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Do: zkserver.Hold(until)})
		called := 0
		s.Inject(zkserver.Fault{Op: zkserver.OpCreate, Do: zkserver.Call(func() {
			called++
			if err := s.Create("/x", nil); err != nil {
				t.Error(err)
			}
		})})
		xid := r.send(zkserver.OpCreate, createRec("/x", "", 0))
		<-inj.Fired()
		r.silent(10 * time.Second)
		if called != 0 {
			t.Fatal("faults at one moment run one after the other")
		}
		close(until)
		if p := r.recv(); p.xid != xid || p.code != zkserver.ErrNodeExists || called != 1 {
			t.Fatalf("%+v, called %d times", p, called)
		}
	})
}

// A Hold ends when its connection ends.
func TestHoldEndsWithTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 4*time.Second)
		s.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.AfterCommit, Do: zkserver.Hold(make(chan struct{}))})
		r.send(zkserver.OpCreate, createRec("/x", "", 0))
		r.closed() // the session expires
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A Fault OnWatch drops or delays a watch event, or closes the connection instead.
func TestFaultsOnWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		lost, late, cut := session(t, s, 40*time.Second), session(t, s, 40*time.Second), session(t, s, 40*time.Second)
		for _, r := range []*raw{lost, late, cut} {
			r.want(0, zkserver.OpExists, watchRec("/"))
			r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/x"))
		}
		on := func(r *raw, do zkserver.Action) *zkserver.Injection {
			return s.Inject(zkserver.Fault{Session: r.id, Path: "/", At: zkserver.OnWatch, Do: do})
		}
		on(lost, zkserver.Drop)
		called := make(chan struct{})
		on(late, zkserver.Delay(time.Second))
		on(late, zkserver.Call(func() { close(called) }))
		gone := on(cut, zkserver.Disconnect)
		begin := time.Now()
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Create("/x", nil); err != nil {
			t.Fatal(err)
		}
		if ev := lost.event(); ev != (event{1, "/x"}) {
			t.Fatalf("%v", ev)
		}
		if ev := late.event(); ev != (event{3, "/"}) || time.Since(begin) != time.Second {
			t.Fatalf("%v after %v", ev, time.Since(begin))
		}
		<-called
		if ev := late.event(); ev != (event{1, "/x"}) {
			t.Fatalf("%v", ev)
		}
		cut.closed()
		<-gone.Fired()
	})
}

// A Fault strikes the handshake of a session at each moment of a connect request.
func TestFaultsOnConnect(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		old := session(t, s, 10*time.Second)
		connect := func(at zkserver.Moment, do zkserver.Action) {
			s.Inject(zkserver.Fault{Session: old.id, Op: zkserver.OpConnect, At: at, Do: do})
		}
		connect(zkserver.BeforeCommit, zkserver.Disconnect)
		old.again(s).closed()
		old.want(0, zkserver.OpPing, nil) // the old connection is unaffected

		connect(zkserver.AfterCommit, zkserver.Disconnect)
		old.again(s).closed()
		old.closed()

		connect(zkserver.BeforeReply, zkserver.Error(-112))
		if w := old.again(s).welcome(); w.id != 0 {
			t.Fatalf("id %x", w.id)
		}
		if len(s.Sessions()) != 1 {
			t.Fatal("the session should live on")
		}
		connect(zkserver.BeforeCommit, zkserver.Drop)
		old.again(s).closed() // times out like a half handshake
		if w := old.again(s).welcome(); w.id != 0 {
			t.Fatal("by then it has expired")
		}
		s.Inject(zkserver.Fault{Op: zkserver.OpConnect, At: zkserver.AfterCommit, Do: zkserver.Disconnect})
		n := rawDial(t, s)
		n.hello(0, 0, 0, "")
		n.closed()
		if len(s.Sessions()) != 1 {
			t.Fatal("a session was made that nobody knows of")
		}
	})
}

// A ping that a fault drops does not keep its session alive.
func TestDroppedPingsDoNotTouch(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		begin := time.Now()
		r := session(t, s, 4*time.Second)
		s.Inject(zkserver.Fault{Op: zkserver.OpPing, Times: -1, Do: zkserver.Drop})
		for range 5 {
			r.send(zkserver.OpPing, nil)
			time.Sleep(time.Second)
		}
		r.closed()
		if d := time.Since(begin); d != 6*time.Second {
			t.Fatalf("expired after %v", d)
		}
	})
}

// Inject panics for an invalid Fault. Breaks if Inject accepts Error(0), an answer that says success and has no result.
func TestInjectRefusesNonsense(t *testing.T) {
	s := start(t, zkserver.Config{})
	for _, f := range []zkserver.Fault{
		{At: 7}, {At: zkserver.OnWatch, Do: zkserver.Error(-1)}, {Do: zkserver.Error(0)}, {Do: zkserver.Hold(nil)},
		{Do: zkserver.Call(nil)}, {Nth: -1}, {Times: -2},
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "zkserver: Fault.") {
					t.Errorf("%+v: %q", f, msg)
				}
			}()
			s.Inject(f)
		}()
	}
}
