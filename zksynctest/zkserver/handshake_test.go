package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// inBubble runs a test in a bubble on a server with the zero Config.
func inBubble(t *testing.T, test func(t *testing.T, s *zkserver.Server)) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) { test(t, start(t, zkserver.Config{})) })
}

// The handshake limits the session timeout to MinSessionTimeout and MaxSessionTimeout.
func TestHandshakeNegotiatesTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		for asked, want := range map[time.Duration]int32{
			0: 4000, time.Second: 4000, 5001 * time.Millisecond: 5001, time.Hour: 40000,
		} {
			if r := session(t, s, asked); r.timeout != want {
				t.Errorf("asked for %v, got %d ms, want %d", asked, r.timeout, want)
			}
		}
		if s.Zxid() != 4 {
			t.Errorf("zxid %d after 4 sessions", s.Zxid())
		}
	})
}

// The connect response has the read-only flag only if the connect request had one.
func TestHandshakeEchoesReadOnlyOnlyToThoseWhoSentIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := rawDial(t, s)
		r.frame(rec{}.i32(0).i64(0).i32(4000).i64(0).str("0123456789abcdef").flag(true))
		in, err := r.read()
		if err != nil || len(in.b) != 37 || in.b[36] != 0 {
			t.Fatalf("% x, %v", in, err)
		}
		r = rawDial(t, s)
		r.hello(0, 0, 0, "")
		if in, err = r.read(); err != nil || len(in.b) != 36 {
			t.Fatalf("% x, %v", in, err)
		}
	})
}

// A client resumes its session with the right password, and the server closes the old connection of
// the session.
func TestReconnect(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		a := session(t, s, 10*time.Second)
		b := a.again(s).welcome()
		if b.id != a.id || b.password != a.password || b.timeout != a.timeout {
			t.Fatalf("got %x %x, want %x %x", b.id, b.password, a.id, a.password)
		}
		a.closed()
		b.want(0, zkserver.OpPing, nil)

		// A wrong password also closes the connection of the right client.
		c := *b
		c.password = "wrong"
		if w := c.again(s).welcome(); w.id != 0 || w.timeout != 0 || w.password != string(make([]byte, 16)) {
			t.Fatalf("refusal is %x %d %x", w.id, w.timeout, w.password)
		}
		b.closed()
		b.again(s).welcome()

		unknown := raw{t: t, id: 42}
		w := unknown.again(s).welcome()
		if w.id != 0 {
			t.Fatalf("an unknown session got id %x", w.id)
		}
		w.closed()
	})
}

// A reconnect negotiates the session timeout again.
func TestReconnectChangesTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		a := session(t, s, 40*time.Second)
		a.timeout = 4000
		a.again(s).welcome()
		if got := s.Sessions()[0].Timeout; got != 4*time.Second {
			t.Fatalf("timeout %v", got)
		}
		time.Sleep(6*time.Second + time.Millisecond)
		if n := len(s.Sessions()); n != 0 {
			t.Fatalf("%d sessions", n)
		}
	})
}

// The server closes the connection of a client that has seen a newer zxid than the server has.
func TestHandshakeRefusesAClientThatHasSeenMore(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		if err := s.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		r := rawDial(t, s)
		r.hello(2, 0, 0, "")
		r.closed()
		r = rawDial(t, s)
		r.hello(1, 0, 0, "")
		r.welcome()
	})
}

// A connect request that is too short closes the connection.
func TestHandshakeThatIsTooShort(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := rawDial(t, s)
		r.frame(rec{}.i32(0).i64(0).i32(4000))
		r.closed()
	})
}

// A connection that does not complete its handshake in time is closed.
func TestHalfHandshakeIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		time.Sleep(3 * time.Second)
		begin := time.Now()
		r := rawDial(t, s)
		r.closed()
		if d := time.Since(begin); d != 17*time.Second {
			t.Fatalf("closed after %v", d)
		}
	})
}

// Requests that a client sends before the connect response are answered after it.
func TestRequestsBehindTheConnectRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := rawDial(t, s)
		r.hello(0, 0, 0, "")
		xid := r.send(zkserver.OpPing, nil)
		r.welcome()
		if p := r.recv(); p.xid != xid {
			t.Fatalf("xid %d", p.xid)
		}
	})
}

// MaxClientConns limits the number of connections, and a connection that ends makes room for another one.
func TestMaxClientConns(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{MaxClientConns: 2})
		a, _ := session(t, s, 0), session(t, s, 0)
		rawDial(t, s).closed()
		a.nc.Close()
		synctest.Wait()
		session(t, s, 0)
	})
}
