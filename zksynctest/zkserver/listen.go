package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// ErrNotServing is what [Server.Serve] and [Server.Listen] return, and the
// operator calls too, while the server is stopped or closed.
var ErrNotServing = errors.New("zkserver: the server is stopped or closed")

// memoryAddr is where an in-memory connection seems to go when the address that
// was dialed is not an IP with a port.
var memoryAddr = netip.MustParseAddrPort("127.0.0.1:2181")

// firstMemoryPort is the first port that in-memory connections seem to come from.
const firstMemoryPort = 32768

// Dial opens an in-memory connection. Any address will do; both ends claim to be
// on 127.0.0.1. While the server is stopped or closed it fails with ECONNREFUSED.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		to = memoryAddr
	}
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
	if s.closed || s.down {
		s.mu.Unlock()
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	port := firstMemoryPort + s.lastPort%(65536-firstMemoryPort)
	s.lastPort++
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: port}
	client, server := newPipe(local, remote)
	refused := !s.startConn(server)
	s.mu.Unlock()
	if refused {
		server.Close()
	}
	return client, nil
}

// listener is one address that the server accepts on.
type listener struct {
	l     net.Listener
	owned bool // opened by Listen: Start opens it again
	addr  net.Addr
}

func (l *listener) close() {
	if l.l != nil {
		l.l.Close()
	}
}

// Serve accepts connections on l until [Server.Close] or [Server.Stop], which
// close l, and then returns nil. Another failure to accept is returned, with l
// closed. TLS listeners work too.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closed || s.down {
		s.mu.Unlock()
		l.Close()
		return ErrNotServing
	}
	entry := &listener{l: l, addr: l.Addr()}
	s.listeners = append(s.listeners, entry)
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	return s.acceptOn(entry, l)
}

func (s *Server) acceptOn(entry *listener, l net.Listener) error {
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			ended := s.closed || s.down || entry.l != l
			if !ended {
				s.listeners = slices.DeleteFunc(s.listeners, func(e *listener) bool { return e == entry })
			}
			s.mu.Unlock()
			l.Close()
			if ended {
				return nil
			}
			return err
		}
		s.mu.Lock()
		ok := !s.closed && !s.down && s.startConn(nc)
		s.mu.Unlock()
		if !ok {
			nc.Close()
		}
	}
}

// Listen opens a TCP listener that belongs to the server and returns its address.
// Close and Stop close it, Start opens it again on the same port. Do not use it
// inside a synctest bubble: a goroutine in Accept stops the bubble's clock.
func (s *Server) Listen(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.down {
		l.Close()
		return nil, ErrNotServing
	}
	entry := &listener{owned: true, addr: l.Addr()}
	s.listeners = append(s.listeners, entry)
	s.acceptOwned(entry, l)
	return l.Addr(), nil
}

func (s *Server) acceptOwned(entry *listener, l net.Listener) {
	entry.l = l
	s.wg.Go(func() { _ = s.acceptOn(entry, l) })
}
