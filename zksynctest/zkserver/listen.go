package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

// ErrNotServing is the error of [Server.Serve], [Server.Listen] and the operator calls while the
// server is stopped or closed.
var ErrNotServing = errors.New("zkserver: the server is stopped or closed")

// firstMemoryPort is the first client port of in-memory connections.
const firstMemoryPort = 32768

// Dial opens an in-memory connection to the endpoint with that address. A standalone server accepts
// any address; both ends have addresses on 127.0.0.1. While the server is stopped or closed, Dial
// fails with ECONNREFUSED.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		to = memoryAddr
	}
	i := slices.IndexFunc(s.en.endpoints, func(e *Endpoint) bool { return e.addr.Port() == to.Port() })
	switch {
	case len(s.en.endpoints) == 1:
		i = 0
	case err != nil || i < 0:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: textAddr{network, address},
			Err: fmt.Errorf("no endpoint has this address: they are %v to %v: %w", s.en.endpoints[0].addr,
				s.en.endpoints[len(s.en.endpoints)-1].addr, os.NewSyscallError("connect", syscall.ECONNREFUSED))}
	}
	return s.dial(ctx, s.en.endpoints[i], network, to)
}

// Dial opens an in-memory connection to the endpoint and ignores the address.
func (e *Endpoint) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return e.s.dial(ctx, e, network, e.addr)
}

// textAddr is an address that could not be parsed.
type textAddr struct{ network, address string }

func (a textAddr) Network() string { return a.network }
func (a textAddr) String() string  { return a.address }

func (s *Server) dial(ctx context.Context, e *Endpoint, network string, to netip.AddrPort) (net.Conn, error) {
	remote := net.TCPAddrFromAddrPort(to)
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err}
	}
	if err := ctx.Err(); err != nil {
		if cause := context.Cause(ctx); cause != err {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return fail(err)
	}
	s.mu.Lock()
	if s.closed || e.down {
		s.mu.Unlock()
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	port := firstMemoryPort + s.conns.lastPort%(65536-firstMemoryPort)
	s.conns.lastPort++
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: port}
	client, server := newPipe(local, remote)
	full := s.startConn(e, server)
	s.mu.Unlock()
	if full != "" {
		s.refuseConn(server, full)
	}
	return client, nil
}

// Serve accepts connections on l until [Server.Close] or [Server.Stop], which close l, and then
// returns nil. If Accept fails, for example because the process has no file descriptors left, Serve
// logs the error with [Config.Logf] and tries again, after 5 ms and then at growing intervals of up
// to a second. Serve returns an error that is [net.ErrClosed], because a closed listener accepts no
// more connections. TLS listeners are supported. If the data file cannot be written, the server
// stops and Serve returns that error. In an ensemble, Server.Serve serves the first endpoint.
func (s *Server) Serve(l net.Listener) error { return s.en.endpoints[0].Serve(l) }

// Serve is [Server.Serve] for this endpoint.
func (e *Endpoint) Serve(l net.Listener) error {
	s := e.s
	s.mu.Lock()
	if s.closed || e.down {
		s.mu.Unlock()
		l.Close()
		return cmp.Or(s.journal.Failure(), ErrNotServing)
	}
	entry := &listener{l: l, addr: l.Addr(), quit: make(chan struct{})}
	quit := entry.quit
	e.listeners = append(e.listeners, entry)
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	return e.acceptOn(entry, l, quit)
}

const (
	// firstAcceptPause and lastAcceptPause bound the pause after a failed Accept; the pause doubles
	// with each failure.
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

func (e *Endpoint) acceptOn(entry *listener, l net.Listener, quit <-chan struct{}) error {
	s := e.s
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			ended := s.closed || e.down || entry.l != l
			if !ended && !errors.Is(err, net.ErrClosed) {
				s.mu.Unlock()
				pause = min(max(2*pause, firstAcceptPause), lastAcceptPause)
				s.notes.print("accept", "could not accept a connection on %v, the next attempt is in %v: %v", entry.addr, pause, err)
				select {
				case <-quit:
				case <-time.After(pause):
				}
				continue // Accept fails again if the listener was closed during the pause
			}
			if !ended {
				e.listeners = slices.DeleteFunc(e.listeners, func(other *listener) bool { return other == entry })
			}
			s.mu.Unlock()
			l.Close()
			if ended {
				return s.journal.Failure()
			}
			return err
		}
		pause = 0
		s.mu.Lock()
		full, ended := "", s.closed || e.down
		if !ended {
			full = s.startConn(e, nc)
		}
		s.mu.Unlock()
		switch {
		case full != "":
			s.refuseConn(nc, full)
		case ended:
			nc.Close()
		}
	}
}

// refuseConn closes a connection beyond a limit.
func (s *Server) refuseConn(nc net.Conn, full string) {
	nc.Close()
	s.notes.print("refused", "refused a connection from %v: %s", nc.RemoteAddr(), full)
}

// Listen opens a TCP listener for the server, in an ensemble for its first endpoint, and returns
// the listener's address. Close and Stop close the listener, and Start opens it again on the same
// port, which stays reserved until Close. Do not call Listen inside a synctest bubble: a goroutine in Accept stops the bubble's
// clock.
func (s *Server) Listen(address string) (net.Addr, error) { return s.en.endpoints[0].Listen(address) }

// Listen is [Server.Listen] for this endpoint.
func (e *Endpoint) Listen(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	entry := &listener{l: l, owned: true, addr: l.Addr()}
	entry.reserve()
	s := e.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || e.down {
		entry.close()
		return nil, ErrNotServing
	}
	e.listeners = append(e.listeners, entry)
	e.acceptOwned(entry, l)
	return l.Addr(), nil
}

func (e *Endpoint) acceptOwned(entry *listener, l net.Listener) {
	entry.l, entry.quit = l, make(chan struct{})
	quit := entry.quit
	e.s.wg.Go(func() { _ = e.acceptOn(entry, l, quit) })
}
