package main

import (
	"context"
	"net"
	"os"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A link is a worker's network: a dialer whose connections can be broken, or cut,
// when they swallow all bytes in both directions and close nothing, as a firewall
// that drops packets does.
type link struct {
	next session.DialFunc

	mu     sync.Mutex
	healed chan struct{} // nil while nothing is cut
	conns  map[*linkConn]bool
}

func newLink(next session.DialFunc) *link {
	return &link{next: next, conns: make(map[*linkConn]bool)}
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if healed := l.isCut(); healed != nil {
		select {
		case <-healed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	conn, err := l.next(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &linkConn{Conn: conn, link: l, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
	return c, nil
}

func (l *link) isCut() (healed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healed
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.healed = make(chan struct{})
}

// heal ends the cut. The connections that went through it have lost bytes, and
// are closed.
func (l *link) heal() {
	l.mu.Lock()
	close(l.healed)
	l.healed = nil
	l.mu.Unlock()
	l.reset()
}

func (l *link) reset() {
	l.mu.Lock()
	conns := l.conns
	l.conns = make(map[*linkConn]bool)
	l.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

type linkConn struct {
	net.Conn
	link   *link
	once   sync.Once
	closed chan struct{}
}

func (c *linkConn) Write(p []byte) (int, error) {
	if c.link.isCut() != nil {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *linkConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		healed := c.link.isCut()
		if healed == nil {
			return n, err
		}
		if err == nil {
			continue // swallowed
		}
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			return 0, os.ErrDeadlineExceeded
		}
		// The other end hung up, which a cut does not let through either.
		select {
		case <-healed:
		case <-c.closed:
		}
		return 0, net.ErrClosed
	}
}

func (c *linkConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
	})
	return c.Conn.Close()
}
