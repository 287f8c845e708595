package network

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Conn is the client's end of a connection.
type Conn struct {
	n      *Net
	client *client
	serial int
	server net.Conn

	// Guarded by the network's mutex:
	lanes [2]lane
	asked map[int32]asked // requests that are not answered, by xid
	part  []byte          // the beginning of a frame whose end the client has not written yet
	over  bool
	hole  bool // everything that arrives is lost

	mu       sync.Mutex
	changed  sync.Cond
	in       []byte
	err      error // of Read, when in is empty
	deadline *time.Timer
}

// A lane is one direction of a connection.
type lane struct {
	waiting   [][]byte // nil marks the end of the connection
	since     []time.Time
	heldUntil time.Time
	count     int // frames that have had their turn
}

// asked is a request that waits for its answer.
type asked struct {
	op int32
	at Address
}

func newConn(n *Net, c *client, serial int, server net.Conn) *Conn {
	conn := &Conn{n: n, client: c, serial: serial, server: server, asked: make(map[int32]asked)}
	conn.changed.L = &conn.mu
	return conn
}

// pump queues the frames that the server sends, until the server ends the
// connection.
func (c *Conn) pump() {
	for {
		frame, err := readFrame(c.server)
		c.n.mu.Lock()
		if c.over {
			c.n.mu.Unlock()
			return
		}
		l := &c.lanes[Down]
		l.waiting, l.since = append(l.waiting, frame), append(l.since, time.Now())
		c.n.mu.Unlock()
		c.n.kick()
		if err != nil {
			return
		}
	}
}

// readFrame returns a frame with its length prefix.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head[:]))
	copy(frame, head[:])
	if _, err := io.ReadFull(r, frame[4:]); err != nil {
		return nil, err
	}
	return frame, nil
}

// Write queues the frames that the client sends. It accepts frames in pieces of
// any size.
func (c *Conn) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.over {
		return 0, os.NewSyscallError("write", syscall.EPIPE)
	}
	c.part = append(c.part, b...)
	for len(c.part) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(c.part))
		if len(c.part) < size {
			break
		}
		c.queue(slices.Clone(c.part[:size]))
		c.part = c.part[size:]
	}
	c.n.kick()
	return len(b), nil
}

// queue adds a frame to the frames that wait to go up. Two goroutines that write at
// the same instant do so in any order. For the run to be repeatable, a ping, which
// may go anywhere, goes behind all other frames of its instant.
func (c *Conn) queue(frame []byte) {
	l := &c.lanes[Up]
	now, at := time.Now(), len(l.waiting)
	if !isPing(frame) {
		for at > 0 && l.since[at-1].Equal(now) && isPing(l.waiting[at-1]) {
			at--
		}
	}
	l.waiting = slices.Insert(l.waiting, at, frame)
	l.since = slices.Insert(l.since, at, now)
}

func (c *Conn) deliver(frame []byte, dir Direction) {
	if dir == Up {
		_, _ = c.server.Write(frame) // fails if the server has hung up: pump then sees the end
		return
	}
	c.mu.Lock()
	c.in = append(c.in, frame...)
	c.changed.Broadcast()
	c.mu.Unlock()
}

// reset ends a connection at both ends. Frames on their way are lost. The client
// can still read the frames that have arrived.
func (n *Net) reset(c *Conn) {
	n.mu.Lock()
	if c.over {
		n.mu.Unlock()
		return
	}
	c.over = true
	c.client.conns = slices.DeleteFunc(c.client.conns, func(other *Conn) bool { return other == c })
	n.mu.Unlock()
	c.server.Close()
	c.fail(syscall.ECONNRESET)
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
}

// Read returns bytes that have arrived, and waits until there are some.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.in) == 0 && c.err == nil {
		c.changed.Wait()
	}
	if len(c.in) == 0 {
		return 0, &net.OpError{Op: "read", Net: "sim", Err: c.err}
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

// Close ends the connection at this end at once. The server sees the end after the
// frames that are on their way.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.in = nil
	c.mu.Unlock()
	c.fail(net.ErrClosed)
	c.n.mu.Lock()
	if !c.over {
		l := &c.lanes[Up]
		l.waiting, l.since = append(l.waiting, nil), append(l.since, time.Now())
	}
	c.n.mu.Unlock()
	c.n.kick()
	return nil
}

// SetReadDeadline makes Read fail from time t on.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline != nil {
		c.deadline.Stop()
		c.deadline = nil
	}
	if c.err == os.ErrDeadlineExceeded {
		c.err = nil
	}
	if !t.IsZero() && c.err == nil {
		c.deadline = time.AfterFunc(time.Until(t), func() { c.fail(os.ErrDeadlineExceeded) })
	}
	return nil
}

// SetWriteDeadline does nothing, because Write never waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of Read.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *Conn) LocalAddr() net.Addr  { return c.server.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr { return c.server.RemoteAddr() }
