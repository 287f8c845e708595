package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A link passes all bytes and the end of each direction.
func TestPassesBytesAndEnds(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	nc := connect(t, l)
	say(t, nc, "hello")
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	go func() {
		_, _ = nc.Write(big)
		_ = nc.(*net.TCPConn).CloseWrite()
	}()
	_ = nc.SetDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(nc)
	if err != nil || !bytes.Equal(got, big) {
		t.Fatalf("got %d of %d bytes, %v", len(got), len(big), err)
	}
	eventually(t, "link empty", func() bool { return l.Conns() == 0 })
	eventually(t, "server empty", func() bool { return echo.open() == 0 })
}

// The client of a link sees that the server closed the connection.
func TestServerEndReachesClient(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	nc := connect(t, l)
	say(t, nc, "hello")
	echo.dropAll()
	wantEnd(t, nc)
}

// Cut swallows everything and closes nothing, and Heal resets the connections from before and during the Cut.
func TestCutSwallowsAndHealResets(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	old := connect(t, l)
	say(t, old, "hello")
	if err := l.Cut(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(old, "lost"); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, old)
	fresh := connect(t, l)
	if _, err := io.WriteString(fresh, "lost too"); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, fresh)
	echo.dropAll() // the end of one side does not reach the other side
	wantSilence(t, old)
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, old)
	wantEnd(t, fresh)
	say(t, connect(t, l), "again")
}

// A cut hides from the server that the client closed its connection, until the link is healed.
func TestCutHidesThatTheClientLeft(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	nc := connect(t, l)
	say(t, nc, "hello")
	if err := l.Cut(); err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
	echo.wantOpen(t, 1)
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "server empty", func() bool { return echo.open() == 0 })
}

// Heal without a Cut keeps the connections.
func TestHealWithoutCutKeepsConnections(t *testing.T) {
	l := listen(t, startEcho(t).addr())
	nc := connect(t, l)
	say(t, nc, "hello")
	if err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	say(t, nc, "still here")
}

// Reset breaks all connections of a link, and new connections work.
func TestReset(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	nc := connect(t, l)
	say(t, nc, "hello")
	if err := l.Reset(); err != nil {
		t.Fatal(err)
	}
	if n := l.Conns(); n != 0 {
		t.Fatalf("%d connections after Reset", n)
	}
	wantEnd(t, nc)
	eventually(t, "server empty", func() bool { return echo.open() == 0 })
	say(t, connect(t, l), "again")
}

// A reset of one end ends that end alone while the link is cut, and both ends otherwise.
func TestResetOfOneEnd(t *testing.T) {
	for _, cut := range []bool{true, false} {
		echo := startEcho(t)
		l := listen(t, echo.addr())
		dialer, other := connect(t, l), connect(t, listen(t, echo.addr()))
		say(t, dialer, "hello")
		say(t, other, "a link of its own")
		if cut {
			if err := l.Cut(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.ResetDialers(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, dialer)
		say(t, other, "still here")
		if !cut {
			eventually(t, "one connection", func() bool { return echo.open() == 1 })
			continue
		}
		echo.wantOpen(t, 2)
		if err := l.Heal(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "one connection", func() bool { return echo.open() == 1 })
	}
}

// ResetTargets breaks the connections at the server's end, also during a Cut.
func TestResetOfTheTargetsEnd(t *testing.T) {
	for _, cut := range []bool{true, false} {
		echo := startEcho(t)
		l := listen(t, echo.addr())
		nc := connect(t, l)
		say(t, nc, "hello")
		if cut {
			if err := l.Cut(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.ResetTargets(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "server empty", func() bool { return echo.open() == 0 })
		if cut {
			wantSilence(t, nc)
			if err := l.Heal(); err != nil {
				t.Fatal(err)
			}
		}
		wantEnd(t, nc)
	}
}

// A delay keeps the order of the bytes and does not limit the throughput.
func TestDelayKeepsOrderAndThroughput(t *testing.T) {
	l := listen(t, startEcho(t).addr())
	nc := connect(t, l)
	const delay = 50 * time.Millisecond
	l.SetDelay(delay)
	start := time.Now()
	say(t, nc, "hello")
	if took := time.Since(start); took < 2*delay {
		t.Fatalf("a round trip took %v with %v of delay each way", took, delay)
	}
	start = time.Now()
	const lines = 100
	for range lines {
		if _, err := io.WriteString(nc, "line\n"); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 5*lines)
	if _, err := io.ReadFull(nc, got); err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.Repeat("line\n", lines) {
		t.Fatalf("out of order: %q", got)
	}
	if took := time.Since(start); took > lines*delay/2 {
		t.Fatalf("%d lines took %v: the delay divides the throughput", lines, took)
	}
	l.SetDelay(0)
	say(t, nc, "prompt")
}

// SetTarget changes the target of new connections, and accepts addresses of the loopback interface only.
func TestTargets(t *testing.T) {
	l := listen(t, "")
	// The reset may come before the dial has returned.
	if nc, err := net.DialTimeout("tcp", l.Addr(), patience); err == nil {
		wantEnd(t, nc)
		_ = nc.Close()
	}
	if err := l.SetTarget(startEcho(t).addr()); err != nil {
		t.Fatal(err)
	}
	say(t, connect(t, l), "hello")
	for _, bad := range []string{"192.0.2.1:80", "localhost:80", "127.0.0.1"} {
		if err := l.SetTarget(bad); err == nil {
			t.Errorf("SetTarget(%q) succeeded", bad)
		}
		if other, err := Listen(bad); err == nil {
			_ = other.Close()
			t.Errorf("Listen(%q) succeeded", bad)
		}
	}
}

// reserve returns an address at which nothing listens. A connection to itself keeps the address from
// everybody who asks for any free port.
func reserve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return l.Addr().String()
}

// WithPatience makes a connection wait until its target listens.
func TestPatienceWaitsForTheTarget(t *testing.T) {
	addr := reserve(t)
	l := listen(t, addr, WithPatience(patience))
	nc := connect(t, l)
	if _, err := io.WriteString(nc, "early"); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, nc)
	target, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	got, err := target.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	buf := make([]byte, 5)
	_ = got.SetDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(got, buf); err != nil || string(buf) != "early" {
		t.Fatalf("got %q, %v", buf, err)
	}
}

// WithRewriter replaces the first bytes of a connection and passes the rest.
func TestRewriter(t *testing.T) {
	upper := func(r io.Reader) ([]byte, error) {
		head := make([]byte, 4)
		n, err := io.ReadFull(r, head)
		return append(bytes.ToUpper(head[:n]), '!'), err
	}
	l := listen(t, startEcho(t).addr(), WithRewriter(upper))
	nc := connect(t, l)
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, "headtail"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 9)
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != "HEAD!tail" {
		t.Fatalf("got %q, %v", got, err)
	}
	short := connect(t, l)
	_, _ = io.WriteString(short, "ab")
	_ = short.(*net.TCPConn).CloseWrite()
	_ = short.SetDeadline(time.Now().Add(patience))
	if got, err := io.ReadAll(short); err != nil || string(got) != "AB!" {
		t.Fatalf("got %q, %v", got, err)
	}
}

// Close ends all connections and waits for all goroutines, also during a delay or a Cut.
func TestCloseJoins(t *testing.T) {
	echo := startEcho(t)
	l := listen(t, echo.addr())
	ncs := []net.Conn{connect(t, l), connect(t, l)}
	for _, nc := range ncs {
		say(t, nc, "hello")
	}
	l.SetDelay(time.Hour) // Close does not wait for a delayed byte
	_, _ = io.WriteString(ncs[0], "late")
	if err := l.Cut(); err != nil {
		t.Fatal(err)
	}
	ncs = append(ncs, connect(t, l))
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, nc := range ncs {
		wantEnd(t, nc)
	}
	for _, err := range []error{l.Cut(), l.Heal(), l.Reset(), l.ResetDialers(), l.ResetTargets(), l.SetTarget("")} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}
