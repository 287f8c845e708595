package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every event that must happen; silence is the time for which a test checks that an
// event does not happen.
const (
	patience = 10 * time.Second
	silence  = 100 * time.Millisecond
)

// echoServer sends back every byte, and counts its connections.
type echoServer struct {
	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
}

func startEcho(t *testing.T) *echoServer {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &echoServer{listener: listener, conns: make(map[net.Conn]struct{})}
	s.wg.Go(func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[nc] = struct{}{}
			s.mu.Unlock()
			s.wg.Go(func() {
				_, _ = io.Copy(nc, nc)
				_ = nc.Close()
				s.mu.Lock()
				delete(s.conns, nc)
				s.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.dropAll()
		s.wg.Wait()
	})
	return s
}

func (s *echoServer) addr() string { return s.listener.Addr().String() }

func (s *echoServer) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// wantOpen requires that n connections stay open for a while, although their other ends have closed
// across a cut link.
func (s *echoServer) wantOpen(t *testing.T, n int) {
	t.Helper()
	over := time.After(silence)
	for {
		if got := s.open(); got != n {
			t.Fatalf("%d connections are open, want %d: the server learned of an end across a cut link", got, n)
		}
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func (s *echoServer) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nc := range s.conns {
		_ = nc.Close()
	}
}

func listen(t *testing.T, target string, opts ...Option) *Link {
	t.Helper()
	l, err := Listen(target, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func connect(t *testing.T, l *Link) net.Conn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", l.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// say writes text and requires that it comes back.
func say(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatalf("write: %v", err)
	}
	buf := make([]byte, len(text))
	if _, err := io.ReadFull(nc, buf); err != nil {
		t.Fatalf("read: %v", err)
	}
	if string(buf) != text {
		t.Fatalf("got %q, want %q", buf, text)
	}
}

// wantSilence requires that nc receives no byte and does not end for a while.
func wantSilence(t *testing.T, nc net.Conn) {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(silence))
	n, err := nc.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
}

// wantEnd requires that nc ends without a further byte.
func wantEnd(t *testing.T, nc net.Conn) {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	n, err := nc.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("read %d bytes, %v; want the end of the connection", n, err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
