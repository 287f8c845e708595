package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// unlimited is a quota without a limit of frames.
const unlimited = -1

// errBroken is the error of a read from a connection that the gate has broken.
var errBroken = errors.New("the gate broke the connection")

// A gate relays the connections of one client to its server. It knows the frames of
// the protocol, and can break a connection after a given number of frames to the
// client. It relays every frame from the client at once.
type gate struct {
	broke chan struct{} // receives when a connection reached its quota

	watches atomic.Int64 // number of requests with a watch that the client has sent

	mu    sync.Mutex
	quota int           // number of frames of the next connection
	shut  chan struct{} // closed when dials may continue
	conns map[*gateConn]struct{}
}

// newGate returns a gate that is open.
func newGate() *gate {
	g := &gate{broke: make(chan struct{}, 1), shut: make(chan struct{}), conns: make(map[*gateConn]struct{})}
	g.open(unlimited)
	return g
}

// close breaks all connections and blocks dials until open.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeLocked()
}

// closeLocked is close for callers that hold g.mu.
func (g *gate) closeLocked() {
	g.shut = make(chan struct{})
	for c := range g.conns {
		c.reset()
	}
	clear(g.conns)
}

// open unblocks dials. The next connection passes the given number of frames to the client after
// the answer to the handshake, and breaks at the next frame; then the gate closes. Answers to pings
// do not count.
func (g *gate) open(frames int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.quota = frames
	close(g.shut)
}

// exhausted closes the gate when a connection has reached its quota.
func (g *gate) exhausted() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeLocked()
	g.broke <- struct{}{}
}

// dial is a dialer for session.WithDialer.
func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if g.shut != shut { // the gate was closed in the meantime
			g.mu.Unlock()
			conn.Close()
			continue
		}
		c := &gateConn{Conn: conn, gate: g, left: g.quota}
		g.quota = unlimited
		g.conns[c] = struct{}{}
		g.mu.Unlock()
		return c, nil
	}
}

// gateConn is one connection through a gate.
type gateConn struct {
	net.Conn
	gate   *gate
	left   int    // number of frames that may still pass
	shaken bool   // the handshake has passed
	rest   []byte // rest of the frame that the client is reading
	sent   []byte // part of the frame that the client is writing
}

// Write passes on the bytes of the client, and counts the requests with a watch.
func (c *gateConn) Write(p []byte) (int, error) {
	c.sent = append(c.sent, p...)
	for len(c.sent) >= 4 {
		end := 4 + int(binary.BigEndian.Uint32(c.sent))
		if len(c.sent) < end {
			break
		}
		if setsWatch(c.sent[4:end]) {
			c.gate.watches.Add(1)
		}
		c.sent = c.sent[end:]
	}
	return c.Conn.Write(p)
}

// setsWatch reports whether a request reads with a watch.
func setsWatch(request []byte) bool {
	const opExists, opGetData, opGetChildren, opGetChildren2 = 3, 4, 8, 12
	if len(request) < 8 {
		return false
	}
	switch binary.BigEndian.Uint32(request[4:]) {
	case opExists, opGetData, opGetChildren, opGetChildren2:
		return request[len(request)-1] == 1
	}
	return false
}

// Read returns the next frame to the client, in parts if p is short.
func (c *gateConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		frame, err := readFrame(c.Conn)
		if err != nil {
			return 0, err
		}
		if !c.admit(frame) {
			c.gate.exhausted()
			return 0, errBroken
		}
		c.rest = frame
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// admit reports whether a frame may pass.
func (c *gateConn) admit(frame []byte) bool {
	const xidPing = -2
	ping := c.shaken && len(frame) >= 8 && int32(binary.BigEndian.Uint32(frame[4:])) == xidPing
	switch {
	case !c.shaken:
		c.shaken = true
	case ping || c.left == unlimited:
	case c.left == 0:
		return false
	default:
		c.left--
	}
	return true
}

// reset breaks the connection at both ends.
func (c *gateConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

// readFrame reads a frame, including its length prefix.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	frame := append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
