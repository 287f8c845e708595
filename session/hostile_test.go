package session_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// The operations of requests that a hostileServer can answer by a function of the test.
const (
	opCreate   = 1
	opExists   = 3
	opGet      = 4
	opSet      = 5
	opSync     = 9
	opPing     = 11
	opChildren = 12
	opMulti    = 14
)

// A hostileServer answers handshakes and requests like a healthy server without data, unless one of its functions
// changes the answer.
type hostileServer struct {
	// grant returns the session that a handshake gets; asked is 0 for a new session.
	grant func(asked int64, timeout int32) (id int64, granted int32)
	// answer handles a request, and returns false if the server should answer as usual.
	answer func(p *hostilePeer, xid, op int32, body []byte) bool
	// greet is called once the handshake was answered.
	greet func(p *hostilePeer)

	mu        sync.Mutex
	dials     []time.Time
	asked     []time.Time // the time of each request
	sessions  int64
	handshake int
	newest    net.Conn
	conns     map[net.Conn]bool
}

// A piece is bytes that are sent at a speed in bytes a second; 0 is at once. A piece without bytes ends the
// connection.
type piece struct {
	b     []byte
	speed int
}

// A hostilePeer is one connection of a hostileServer.
type hostilePeer struct {
	h    *hostileServer
	conn net.Conn

	mu    sync.Mutex
	out   []piece
	wake  chan struct{}
	ended chan struct{}
}

func (h *hostileServer) dial(context.Context, string, string) (net.Conn, error) {
	h.note(&h.dials)
	near, far := net.Pipe()
	h.mu.Lock()
	h.newest = far
	if h.conns == nil {
		h.conns = make(map[net.Conn]bool)
	}
	h.conns[far] = true
	h.mu.Unlock()
	go h.serve(far)
	return near, nil
}

// note appends the present time to a list.
func (h *hostileServer) note(list *[]time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*list = append(*list, time.Now())
}

// hangUpAll closes all connections.
func (h *hostileServer) hangUpAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn := range h.conns {
		conn.Close()
	}
}

// hangUp closes the newest connection.
func (h *hostileServer) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest.Close()
}

// setAnswer sets the function that answers requests.
func (h *hostileServer) setAnswer(answer func(p *hostilePeer, xid, op int32, body []byte) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *hostileServer) count() (dials, requests int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.dials), len(h.asked)
}

func (h *hostileServer) serve(conn net.Conn) {
	p := &hostilePeer{h: h, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	defer close(p.ended)
	defer func() {
		conn.Close()
		h.mu.Lock()
		delete(h.conns, conn)
		h.mu.Unlock()
	}()
	hello, err := readRequest(conn)
	if err != nil || len(hello) < 24 {
		return
	}
	timeout, id := int32(binary.BigEndian.Uint32(hello[12:])), int64(binary.BigEndian.Uint64(hello[16:]))
	h.mu.Lock()
	h.handshake++
	if h.grant != nil {
		id, timeout = h.grant(id, timeout)
	} else if id == 0 {
		h.sessions++
		id = h.sessions
	}
	h.mu.Unlock()
	go p.write()
	p.frame(ints(0, timeout), longs(id), ints(16), make([]byte, 16), []byte{0})
	if h.greet != nil {
		h.greet(p)
	}
	for {
		req, err := readRequest(conn)
		if err != nil || len(req) < 8 {
			return
		}
		xid, op := int32(binary.BigEndian.Uint32(req)), int32(binary.BigEndian.Uint32(req[4:]))
		h.mu.Lock()
		h.asked = append(h.asked, time.Now())
		answer := h.answer
		h.mu.Unlock()
		if answer == nil || !answer(p, xid, op, req[8:]) {
			p.plain(xid, op)
		}
	}
}

// plain answers a request like a healthy server.
func (p *hostilePeer) plain(xid, op int32) { p.raw(p.answerTo(xid, op)) }

// answerTo builds the answer of a healthy server.
func (p *hostilePeer) answerTo(xid, op int32) []byte {
	head := append(append(ints(xid), longs(1)...), ints(0)...)
	switch op {
	case opPing:
		copy(head, ints(-2))
		return framed(head)
	case opGet:
		return framed(head, ints(3), []byte("abc"), make([]byte, 68))
	case opChildren:
		return framed(head, ints(0), make([]byte, 68))
	case opExists, opSet:
		return framed(head, make([]byte, 68))
	case opMulti:
		return framed(head, ints(13), []byte{0}, ints(0), ints(-1), []byte{1}, ints(-1))
	}
	return framed(head, ints(1), []byte("/"))
}

// reply sends an answer.
func (p *hostilePeer) reply(xid, code int32, body ...[]byte) {
	p.frame(append([][]byte{ints(xid), longs(1), ints(code)}, body...)...)
}

func (p *hostilePeer) frame(parts ...[]byte) { p.raw(framed(parts...)) }

// framed puts the length in front of a frame.
func framed(parts ...[]byte) []byte {
	b := make([]byte, 4)
	for _, part := range parts {
		b = append(b, part...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// raw queues bytes, which are sent in order.
func (p *hostilePeer) raw(b []byte) { p.slowly(b, 0) }

// slowly queues bytes that are sent at a speed.
func (p *hostilePeer) slowly(b []byte, speed int) {
	p.mu.Lock()
	p.out = append(p.out, piece{b, speed})
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *hostilePeer) write() {
	for {
		p.mu.Lock()
		out := p.out
		p.out = nil
		p.mu.Unlock()
		for _, o := range out {
			if p.send(o) != nil || o.b == nil {
				return
			}
		}
		if len(out) > 0 {
			continue
		}
		select {
		case <-p.wake:
		case <-p.ended:
			return
		}
	}
}

// slowStep is the pause between two pieces of a slow answer.
const slowStep = 50 * time.Millisecond

func (p *hostilePeer) send(o piece) error {
	if o.b == nil {
		return p.conn.Close()
	}
	step := len(o.b)
	if o.speed > 0 {
		step = max(1, int(float64(o.speed)*slowStep.Seconds()))
	}
	for len(o.b) > 0 {
		n := min(step, len(o.b))
		if _, err := p.conn.Write(o.b[:n]); err != nil {
			return err
		}
		if o.b = o.b[n:]; o.speed > 0 {
			select {
			case <-time.After(slowStep):
			case <-p.ended:
				return net.ErrClosed
			}
		}
	}
	return nil
}

// hangUp ends the connection after the queued bytes.
func (p *hostilePeer) hangUp() { p.raw(nil) }

func readRequest(conn net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > math.MaxInt32 {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	_, err := io.ReadFull(conn, b)
	return b, err
}

func ints(list ...int32) (b []byte) {
	for _, v := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func longs(list ...int64) (b []byte) {
	for _, v := range list {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// connectTo opens a Manager on a hostile server.
func connectTo(t testing.TB, h *hostileServer, opts ...session.Option) *session.Manager {
	t.Helper()
	m, err := session.Connect(t.Context(), "127.0.0.1:2181", append([]session.Option{session.WithDialer(h.dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
