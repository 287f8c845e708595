package network

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"
)

// A dial waits for its turn.
type dial struct {
	open   func() (net.Conn, error)
	ctx    context.Context
	since  time.Time
	result chan dialed // has a buffer of one
	gone   bool        // the caller has gone; guarded by the network's mutex
}

type dialed struct {
	conn net.Conn
	err  error
}

// Dialer returns the dial function of a client. When it is the turn of a dial, the
// network calls open for the server's end of the connection.
func (n *Net) Dialer(number int, open func(ctx context.Context, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		d := &dial{ctx: ctx, since: time.Now(), result: make(chan dialed, 1)}
		d.open = func() (net.Conn, error) { return open(ctx, address) }
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, refused
		}
		c := n.clients[number]
		c.dials = append(c.dials, d)
		n.mu.Unlock()
		n.kick()
		select {
		case r := <-d.result:
			return r.conn, r.err
		case <-ctx.Done():
		}
		n.mu.Lock()
		d.gone = true
		n.mu.Unlock()
		select {
		case r := <-d.result:
			return r.conn, r.err
		default:
			return nil, context.Cause(ctx)
		}
	}
}

var refused = &net.OpError{Op: "dial", Net: "sim", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// connect makes the oldest dial of a client succeed.
func (n *Net) connect(c *client) {
	n.mu.Lock()
	d := c.dials[0]
	c.dials = c.dials[1:]
	n.mu.Unlock()
	if d.ctx.Err() != nil {
		return
	}
	server, err := d.open()
	if err != nil {
		n.note(c.number, 0, 'r', 0, 0)
		d.result <- dialed{err: err}
		return
	}
	n.mu.Lock()
	if d.gone || n.closed {
		n.mu.Unlock()
		server.Close()
		d.result <- dialed{err: refused}
		return
	}
	c.serial++
	conn := newConn(n, c, c.serial, server)
	c.conns = append(c.conns, conn)
	n.wg.Go(conn.pump)
	d.result <- dialed{conn: conn}
	n.mu.Unlock()
	n.note(c.number, conn.serial, 'c', 0, 0)
}
