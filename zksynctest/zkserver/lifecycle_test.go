package zkserver_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Stop and Start keep the tree, the sessions and the zxid, and give each session its full timeout.
func TestRestartKeepsEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 4*time.Second)
		r.create("/e", 1)
		zxid := s.Zxid()
		time.Sleep(3 * time.Second)
		s.Stop()
		r.closed()
		if _, err := s.Dial(t.Context(), "tcp", "127.0.0.1:2181"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v", err)
		}
		if err := s.Create("/x", nil); !errors.Is(err, zkserver.ErrNotServing) {
			t.Fatalf("%v", err)
		}
		time.Sleep(time.Hour)
		if len(s.Sessions()) != 1 {
			t.Fatal("a session expired on a server that is down")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if s.Zxid() != zxid {
			t.Fatalf("zxid %d, was %d", s.Zxid(), zxid)
		}
		r.again(s).welcome().want(0, zkserver.OpExists, rec{}.str("/e").flag(false))
		time.Sleep(4 * time.Second)
		if len(s.Sessions()) != 1 {
			t.Fatalf("expired %v after the start", time.Since(begin))
		}
		time.Sleep(2*time.Second + time.Millisecond)
		if len(s.Sessions()) != 0 {
			t.Fatal("it does not expire")
		}
		if err := errors.Join(s.Start(), s.Restart()); err != nil {
			t.Fatal(err)
		}
	})
}

// A frozen server answers nothing and expires no session, and answers the waiting requests when it thaws.
func TestFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r, idle := session(t, s, 4*time.Second), session(t, s, 4*time.Second)
		s.Freeze()
		xid := r.send(zkserver.OpPing, nil)
		n := rawDial(t, s)
		n.hello(0, 0, 0, "")
		r.silent(time.Minute)
		n.silent(time.Minute)
		if len(s.Sessions()) != 2 {
			t.Fatal("expired while frozen")
		}
		s.Thaw()
		if p := r.recv(); p.xid != xid {
			t.Fatalf("%+v", p)
		}
		n.welcome()
		idle.closed() // the idle session has sent nothing, and has expired
		if len(s.Sessions()) != 2 {
			t.Fatalf("%+v", s.Sessions())
		}
		r.want(0, zkserver.OpPing, nil)
	})
}

// A frozen server holds watch events back until it thaws.
func TestFreezeHoldsBackEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		r.want(0, zkserver.OpExists, watchRec("/"))
		s.Freeze()
		if err := s.Set("/", nil); err != nil {
			t.Fatal(err)
		}
		r.silent(time.Minute)
		s.Thaw()
		if ev := r.event(); ev != (event{3, "/"}) {
			t.Fatalf("%v", ev)
		}
		s.Freeze()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		r.closed()
		r.again(s).welcome().want(0, zkserver.OpPing, nil)
		s.Freeze() // Close must work on a frozen server
	})
}

// Close ends all connections, may be called again, and returns when no goroutine is left.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Close()
		}()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		<-done
		r.closed()
		if _, err := s.Dial(t.Context(), "tcp", ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v", err)
		}
		if err := s.Start(); !errors.Is(err, zkserver.ErrNotServing) {
			t.Fatalf("%v", err)
		}
	})
}

// Dial with a context that has ended fails with the context's error and cause.
func TestDialWithAContextThatIsOver(t *testing.T) {
	s := start(t, zkserver.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := s.Dial(ctx, "tcp", "x:1"); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
}

// A server that is stopped and started again listens on the same addresses.
func TestListenComesBackOnTheSamePort(t *testing.T) {
	s := start(t, zkserver.Config{})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(other) }()
	connect := func(a net.Addr) *raw {
		t.Helper()
		nc, err := net.Dial("tcp", a.String())
		if err != nil {
			t.Fatal(err)
		}
		r := rawOver(t, nc)
		r.hello(0, 0, 0, "")
		return r.welcome()
	}
	r := connect(addr)
	connect(other.Addr())
	s.Stop()
	r.closed()
	if err := <-served; err != nil {
		t.Fatalf("Serve: %v", err)
	}
	for _, a := range []net.Addr{addr, other.Addr()} {
		if nc, err := net.Dial("tcp", a.String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v, %v", nc, err)
		}
	}
	if _, err := s.Listen("127.0.0.1:0"); !errors.Is(err, zkserver.ErrNotServing) {
		t.Fatalf("%v", err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	connect(addr)
}

// Start fails if another server listens on the port, and succeeds when that server has ended.
func TestStartThatCannotListen(t *testing.T) {
	s := start(t, zkserver.Config{})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	thief, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v", err)
	}
	thief.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
}

// The port of a stopped server is not free: the system gives it to no server that asks for any port.
// Such a server binds its port by the same rule as a listener that does not reuse addresses. After
// Close the port is free.
func TestAStoppedServerKeepsItsPort(t *testing.T) {
	s := start(t, zkserver.Config{})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stranger := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
		return errors.Join(err, failed)
	}}
	s.Stop()
	for range 2 {
		if l, err := stranger.Listen(t.Context(), "tcp", addr.String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("%v, %v", l, err)
		}
		if nc, err := net.Dial("tcp", addr.String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%v, %v", nc, err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		s.Stop()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// A client that does not read its answers delays no other client, and gets all of them when it reads.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		slow, r := session(t, s, 40*time.Second), session(t, s, 40*time.Second)
		if err := s.Set("/", make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			slow.send(zkserver.OpGetData, rec{}.str("/").flag(false))
		}
		synctest.Wait()
		r.want(0, zkserver.OpPing, nil)
		for i := range 50 {
			if p := slow.recv(); p.xid != int32(i+1) || p.i32() != 100_000 {
				t.Fatalf("%+v", p)
			}
		}
		// The connection of a client that never reads can be closed.
		for range 50 {
			slow.send(zkserver.OpGetData, rec{}.str("/").flag(false))
		}
		synctest.Wait()
		begin := time.Now()
		if err := s.Close(); err != nil || time.Since(begin) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
	})
}
