package zkserver_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// exhausted is a listener of a process without file descriptors: each Accept fails until a
// connection arrives.
type exhausted struct {
	mu       sync.Mutex
	attempts int
	conns    chan net.Conn
	closed   chan struct{}
}

func (l *exhausted) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	case c := <-l.conns:
		return c, nil
	default:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
}

func (l *exhausted) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *exhausted) Addr() net.Addr { return &net.TCPAddr{} }

func (l *exhausted) tried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts
}

// lines collects the lines of a log.
type lines struct {
	mu   sync.Mutex
	list []string
}

func (l *lines) logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fmt.Sprintf(format, args...))
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.list...)
}

// A failed Accept does not end Serve: Serve tries again at growing intervals, logs a failure at
// most once a second, and ends at once with Close. The line to break is the continue in acceptOn.
func TestAcceptGoesOn(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		s := start(t, zkserver.Config{Logf: log.logf})
		l := &exhausted{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := l.tried(); n < 20 || n > 40 {
			t.Errorf("%d attempts in 20 s", n)
		}
		if n := len(log.all()); n < 10 || n > 21 {
			t.Errorf("%d lines in 20 s: %q", n, log.all())
		}
		client, server := net.Pipe()
		l.conns <- server
		r := rawOver(t, client)
		r.hello(0, 10*time.Second, 0, "")
		r.welcome()

		begin := time.Now()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-served; err != nil || time.Since(begin) > 0 {
			t.Errorf("Serve returned %v, %v after Close", err, time.Since(begin))
		}
	})
}

// Serve returns when its listener is closed from outside, because the listener will not accept
// again.
func TestServeEndsWithItsListener(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{})
		l := &exhausted{conns: make(chan net.Conn), closed: make(chan struct{})}
		l.Close()
		if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// A connection beyond MaxConns is accepted and closed, on any endpoint and from any address. The
// log reports it, and a new connection is accepted after others have closed. The line to break is
// the comparison with len(s.conns) in full.
func TestMaxConns(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var log lines
		s, err := zkserver.NewEnsemble(zkserver.Config{MaxConns: 2, Logf: log.logf}, 3)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		a := session(t, s, 0)
		dialEndpoint := func(i int) *raw {
			nc, err := s.Endpoint(i).Dial(t.Context(), "tcp", "")
			if err != nil {
				t.Fatal(err)
			}
			return rawOver(t, nc)
		}
		b := dialEndpoint(2)
		b.hello(0, 0, 0, "")
		b.welcome()
		dialEndpoint(3).closed()
		if got := log.all(); len(got) != 1 || got[0] != "refused a connection from 127.0.0.1:32770: there are 2 connections (Config.MaxConns)" {
			t.Errorf("%q", got)
		}
		a.nc.Close()
		synctest.Wait()
		c := dialEndpoint(3)
		c.hello(0, 0, 0, "")
		c.welcome()
	})
}
