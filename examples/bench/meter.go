package main

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
)

// A meter counts the bytes and the requests of connections to a ZooKeeper server.
type meter struct {
	bytes    atomic.Int64 // both ways
	requests atomic.Int64 // without pings and syncs, which keep the session and not the row going
	reads    atomic.Int64
}

func (m *meter) reset() {
	m.bytes.Store(0)
	m.requests.Store(0)
	m.reads.Store(0)
}

func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, meter: m}, nil
}

type meteredConn struct {
	net.Conn
	meter  *meter
	frames frameCounter // Write is called by one goroutine at a time
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.bytes.Add(int64(n))
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	// Before it is sent: the answer may be there before Write returns, and then
	// the next row would have the request.
	c.meter.bytes.Add(int64(len(b)))
	c.frames.add(c.meter, b)
	return c.Conn.Write(b)
}

// A frameCounter finds the requests in the bytes that a client writes: each request
// begins with a length, an xid and an operation. The first frame is the handshake.
type frameCounter struct {
	head []byte // the first twelve bytes of a frame, as far as they came
	skip int    // bytes of the frame to come
	open bool   // the handshake is over
}

func (f *frameCounter) add(m *meter, b []byte) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := min(12-len(f.head), len(b))
		f.head = append(f.head, b[:n]...)
		b = b[n:]
		if len(f.head) < 12 {
			return
		}
		f.skip = max(0, int(binary.BigEndian.Uint32(f.head))-8)
		if f.open {
			m.request(int32(binary.BigEndian.Uint32(f.head[8:])))
		}
		f.open = true
		f.head = f.head[:0]
	}
}

func (m *meter) request(op int32) {
	switch op {
	case 11, 9: // ping, sync
		return
	case 3, 4, 6, 8, 12, 22: // exists, getData, getACL, getChildren, getChildren2, multiRead
		m.reads.Add(1)
	}
	m.requests.Add(1)
}
