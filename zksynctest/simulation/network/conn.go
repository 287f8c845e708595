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
	read     int   // bytes of in that Read has returned
	err      error // of Read, when all of in has been read
	deadline *time.Timer
}

// A lane is one direction of a connection.
type lane struct {
	waiting   []queued
	heldUntil time.Time
	count     int // frames that have had their turn
}

// queued is a frame in a lane.
type queued struct {
	bytes []byte // nil marks the end of the connection
	since time.Time
}

// pop removes the first frame. It keeps the beginning of the slice, so that later frames need no
// new memory.
func (l *lane) pop() queued {
	first := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return first
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
	var head [4]byte
	for {
		frame, err := readFrame(c.server, head[:])
		c.n.mu.Lock()
		if c.over {
			c.n.mu.Unlock()
			return
		}
		l := &c.lanes[Down]
		l.waiting = append(l.waiting, queued{frame, time.Now()})
		c.n.mu.Unlock()
		c.n.kick()
		if err != nil {
			return
		}
	}
}

// readFrame returns a frame with its length prefix. It reads the prefix into head.
func readFrame(r io.Reader, head []byte) ([]byte, error) {
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(head))
	copy(frame, head)
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
	used := 0
	for rest := c.part; len(rest) >= 4; rest = c.part[used:] {
		size := 4 + int(binary.BigEndian.Uint32(rest))
		if len(rest) < size {
			break
		}
		c.queue(slices.Clone(rest[:size]))
		used += size
	}
	c.part = slices.Delete(c.part, 0, used)
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
		for at > 0 && l.waiting[at-1].since.Equal(now) && isPing(l.waiting[at-1].bytes) {
			at--
		}
	}
	l.waiting = slices.Insert(l.waiting, at, queued{frame, now})
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
	n := copy(b, c.in[c.read:])
	if c.read += n; c.read == len(c.in) {
		c.in, c.read = c.in[:0], 0
	}
	return n, nil
}

// Close ends the connection at this end at once. The server sees the end after the
// frames that are on their way.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.in, c.read = nil, 0
	c.mu.Unlock()
	c.fail(net.ErrClosed)
	c.n.mu.Lock()
	if !c.over {
		l := &c.lanes[Up]
		l.waiting = append(l.waiting, queued{nil, time.Now()})
	}
	c.n.mu.Unlock()
	c.n.kick()
	return nil
}

// SetReadDeadline makes Read fail from time t on.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == os.ErrDeadlineExceeded {
		c.err = nil
	}
	switch on := !t.IsZero() && c.err == nil; {
	case on && c.deadline == nil:
		c.deadline = time.AfterFunc(time.Until(t), func() { c.fail(os.ErrDeadlineExceeded) })
	case on:
		c.deadline.Reset(time.Until(t))
	case c.deadline != nil:
		c.deadline.Stop()
	}
	return nil
}

// SetWriteDeadline does nothing, because Write never waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the deadline of Read.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *Conn) LocalAddr() net.Addr  { return c.server.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr { return c.server.RemoteAddr() }
