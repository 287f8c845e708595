package zkserver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ExpireSession ends a session at once, with its connection and its ephemerals.
func TestExpireSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, watcher := session(t, s, 0), session(t, s, 0)
		r.create("/e", 1)
		watcher.want(0, zkserver.OpExists, watchRec("/e"))
		if err := s.ExpireSession(r.id); err != nil {
			t.Fatal(err)
		}
		r.closed()
		if ev := watcher.event(); ev != (event{2, "/e"}) {
			t.Fatalf("%v", ev)
		}
		if w := r.again(s).welcome(); w.id != 0 {
			t.Fatal("it lives")
		}
		for _, err := range []error{s.ExpireSession(r.id), s.Disconnect(r.id)} {
			if !errors.Is(err, zkserver.ErrSessionExpired) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// A Partition drops all bytes between the client of a session and the server, and the server
// expires the session after its timeout.
func TestPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, watcher := session(t, s, 10*time.Second), session(t, s, 40*time.Second)
		begin := time.Now()
		r.create("/e", 1)
		r.want(0, zkserver.OpGetData, watchRec("/"))
		watcher.want(0, zkserver.OpExists, watchRec("/e"))
		s.Partition(r.id)
		r.send(zkserver.OpSetData, rec{}.str("/e").str("lost").i32(-1))
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		second := r.again(s)
		for range 3 {
			r.send(zkserver.OpPing, nil)
			r.silent(2 * time.Second)
		}
		if ev := watcher.event(); ev != (event{2, "/e"}) || time.Since(begin) != 12*time.Second {
			t.Fatalf("%v after %v", ev, time.Since(begin))
		}
		// The client of the session notices nothing.
		r.silent(time.Minute)
		second.silent(time.Minute)
		other := session(t, s, 0)
		s.Heal(r.id)
		r.closed()
		second.closed()
		if w := r.again(s).welcome(); w.id != 0 {
			t.Fatal("it lives")
		}
		other.want(zkserver.ErrNoNode, zkserver.OpExists, rec{}.str("/e").flag(false))
		if n := s.Traffic(r.id).Requests; n != 3 {
			t.Fatalf("%d requests came through", n)
		}
	})
}

// Heal ends a Partition, and the client resumes its session if the timeout has not passed.
func TestPartitionThatHealsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		s.Partition(r.id)
		time.Sleep(8 * time.Second)
		s.Heal(r.id)
		r.closed()
		r.again(s).welcome().want(0, zkserver.OpPing, nil)
	})
}

// A Partition hides from the server that the client closed its connection, and from the client that the server stopped.
func TestPartitionAndClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		s.Partition(r.id)
		second := r.again(s)
		second.nc.Close() // the server does not notice
		synctest.Wait()
		if !s.Sessions()[0].Connected {
			t.Fatal("a partition hides that the client has gone")
		}
		s.Stop()
		r.silent(time.Minute)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r.closed()
	})
}

// While HangHandshake is on, new connections get no answer to their handshake, and existing
// connections still work.
func TestHangHandshake(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		before := session(t, s, 40*time.Second)
		s.HangHandshake(true)
		r := rawDial(t, s)
		r.hello(0, 0, 0, "")
		r.silent(time.Second)
		ops := s.Ops()
		before.want(0, zkserver.OpPing, nil)
		r.silent(time.Hour)
		if last := ops[len(ops)-1]; last.Code != zkserver.OpConnect || last.Done {
			t.Fatalf("%+v", last)
		}
		s.HangHandshake(false)
		r.closed()
		session(t, s, 0)
	})
}

// DelayEphemeralRemoval keeps the ephemerals of an ended session for the given time.
func TestDelayEphemeralRemoval(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.create("/e", 1)
		s.DelayEphemeralRemoval(3 * time.Second)
		before := s.Zxid()
		if p := r.want(0, zkserver.OpCloseSession, nil); p.zxid != before+1 {
			t.Fatalf("%+v", p)
		}
		time.Sleep(3*time.Second - time.Millisecond)
		if _, ok := s.Get("/e"); !ok {
			t.Fatal("too early")
		}
		time.Sleep(2 * time.Millisecond)
		if _, ok := s.Get("/e"); ok || s.Zxid() != before+2 {
			t.Fatalf("still there, or zxid %d", s.Zxid())
		}
		s.DelayEphemeralRemoval(0)
		r = session(t, s, 0)
		r.create("/e", 1)
		r.want(0, zkserver.OpCloseSession, nil)
		if _, ok := s.Get("/e"); ok {
			t.Fatal("still delayed")
		}
	})
}

// SwapSessionID makes the server answer the next reconnect of a session with another session.
func TestSwapSessionID(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 10*time.Second)
		r.create("/e", 1)
		s.SwapSessionID(r.id)
		w := r.again(s).welcome()
		if w.id == 0 || w.id == r.id || w.password == r.password {
			t.Fatalf("id %x", w.id)
		}
		r.closed()
		w.want(0, zkserver.OpPing, nil)
		if back := r.again(s).welcome(); back.id != r.id {
			t.Fatal("only the next reconnect is swapped")
		}
	})
}

// An unknown operation, and an operation of Config.Without, is refused like by a real server.
func TestUnknownOperations(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{Without: []zkserver.OpCode{zkserver.OpCreateContainer}})
		for _, ask := range []struct {
			op   zkserver.OpCode
			body rec
		}{
			{zkserver.OpCreateContainer, createRec("/c", "", 4)}, {0, nil}, {-10, nil}, {99, nil},
			{zkserver.OpConnect, nil}, {108, nil},
		} {
			r := session(t, s, 0)
			if p := r.want(zkserver.ErrUnimplemented, ask.op, ask.body); p.zxid != -1 {
				t.Errorf("%v: %+v", ask.op, p)
			}
			r.closed()
		}
		r := session(t, s, 0)
		r.want(zkserver.ErrMarshalling, zkserver.OpMulti, multi(sub(zkserver.OpCreateContainer, createRec("/c", "", 4))))
		if p := r.want(0, zkserver.OpSASL, rec{}.str("token")); p.zxid != 0 || p.str() != "<null>" {
			t.Errorf("sasl: %+v", p)
		}
		r.send(zkserver.OpSASL, rec{}.i32(7))
		r.closed()
	})
}

// Without a leader no session ends and no counter changes: ExpireSession and SetNextSequence change nothing and return
// ErrNotServing.
func TestNothingChangesWithoutALeader(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		r.create("/e", 1)
		refused := func(when string) {
			t.Helper()
			before := s.Everything()
			for what, err := range map[string]error{"ExpireSession": s.ExpireSession(r.id), "SetNextSequence": s.SetNextSequence("/", 7)} {
				if !errors.Is(err, zkserver.ErrNotServing) {
					t.Errorf("%s: %s: error %v, want ErrNotServing", when, what, err)
				}
			}
			if after := s.Everything(); after != before {
				t.Errorf("%s: the state is\n%s\nwas\n%s", when, after, before)
			}
		}
		s.Endpoint(2).Stop()
		s.Endpoint(3).Stop()
		refused("without a quorum")
		s.Stop()
		refused("stopped")
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.ExpireSession(r.id), s.SetNextSequence("/", 7)); err != nil {
			t.Errorf("after a start: %v", err)
		}
	})
}

// The end of HangHandshake keeps a connection open whose ConnectRequest waits for another reason.
func TestHangHandshakeOffKeepsOtherConnections(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		old := s.Depose()
		waits := dialAt(t, s, old) // a deposed leader leaves a new session unanswered
		waits.hello(0, 10*time.Second, 0, "")
		synctest.Wait()
		s.HangHandshake(true)
		hangs := dialAt(t, s, s.Leader())
		hangs.hello(0, 10*time.Second, 0, "")
		synctest.Wait()
		s.HangHandshake(false)
		hangs.closed()
		waits.silent(time.Second)
	})
}

// Partition of the id 0, which is no session, affects no client.
func TestPartitionOfNoSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		s.Partition(0)
		session(t, s, 10*time.Second).want(0, zkserver.OpPing, nil)
	})
}
