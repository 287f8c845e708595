package proxy

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// conn is one relayed connection.
type conn struct {
	link   *Link
	client net.Conn
	holed  atomic.Bool        // swallows bytes, and keeps its ends from learning of each other
	ctx    context.Context    // done when the connection is aborted
	cancel context.CancelFunc // aborts a dial and the waits of the pumps
	gone   chan struct{}      // closed when nothing of the connection is left

	mu      sync.Mutex
	server  net.Conn // nil until the target answered
	aborted bool
}

func newConn(l *Link, client net.Conn) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{link: l, client: client, ctx: ctx, cancel: cancel, gone: make(chan struct{})}
}

func (c *conn) hole() { c.holed.Store(true) }

// abort resets both ends, and with them ends every pump.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		return
	}
	c.aborted = true
	c.cancel()
	closeHard(c.client)
	if c.server != nil {
		closeHard(c.server)
	}
}

// resetEnd resets one end, the dialer's or the target's. The other end learns of it
// unless the connection swallows bytes.
func (c *conn) resetEnd(dialed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case dialed:
		closeHard(c.client)
	case c.server != nil:
		closeHard(c.server)
	}
}

// finish closes both ends of a connection, after both ends were closed in order,
// without a reset: a reset might overtake the last bytes.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		return
	}
	c.aborted = true
	c.cancel()
	_ = c.client.Close()
	_ = c.server.Close()
}

// closeHard closes with a reset, so that the peer does not take it for a
// connection that was ended in order.
func closeHard(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = nc.Close()
}

// closeWrite ends the stream to nc in order. It closes a connection that has no half-close,
// such as a net.Pipe, as a whole: the peer learns of the end in no other way.
func closeWrite(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = nc.Close()
}

// attach adds the connection to the target, unless c was aborted meanwhile.
func (c *conn) attach(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		closeHard(server)
		return false
	}
	c.server = server
	return true
}

// run relays until both directions have ended or the connection is aborted.
func (c *conn) run(target string) {
	defer c.abort()
	if c.holed.Load() {
		c.swallow()
		return
	}
	server := c.server
	if server == nil {
		var err error
		if server, err = c.link.dial(c.ctx, target); err != nil {
			c.fail()
			return
		}
		if !c.attach(server) {
			return
		}
	}
	up := newPump(c, c.client, server, &c.link.up)
	up.rewrite = c.link.rewrite
	down := newPump(c, server, c.client, &c.link.down)
	var wg sync.WaitGroup
	for _, p := range []*pump{up, down} {
		wg.Go(p.read)
		wg.Go(p.write)
	}
	wg.Wait()
	c.finish()
}

// swallow discards the bytes of the client, and waits for the link to heal if the
// client closes: the target must not learn of the close across a cut link.
func (c *conn) swallow() {
	_, _ = io.Copy(io.Discard, c.client)
	<-c.ctx.Done()
}

// fail ends a connection whose other end broke. Across a cut link nobody
// learns of that: the connection stays until the link heals.
func (c *conn) fail() {
	if c.holed.Load() {
		<-c.ctx.Done()
		return
	}
	c.abort()
}
