package zkserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

const (
	readBuffer = 16 << 10
	// handshakeTime is how long a connection may live without a session, up to the
	// next multiple of it.
	handshakeTime = 10 * time.Second
)

// conn is one connection: a goroutine that reads, decodes and executes its
// requests in order, and one that writes what is queued for it.
type conn struct {
	s   *Server
	ep  *Endpoint
	id  uint64
	nc  net.Conn
	ip  string
	br  *bufio.Reader
	out outQueue
	// done is closed when the connection has ended for the server; the socket
	// closes a little later.
	done chan struct{}
	// hole is set while the bytes of this connection go nowhere; released is closed
	// when its socket may be closed after that.
	hole     atomic.Bool
	released chan struct{}
	traffic  atomic.Pointer[trafficCount]

	// What the reader goroutine uses from one request to the next.
	req   jute.Request
	reply []byte
	big   []byte // a frame that does not fit the buffer of br

	// Guarded by the server's mu.
	closed    bool
	why       string // it was closed, if a limit made the server close it
	hung      bool   // its ConnectRequest was swallowed
	sess      *session
	client    tree.Client
	sasl      saslExchange
	timeout   time.Duration // as negotiated for this connection
	rep       *replica      // of its endpoint, if no fault gave it another
	handshake *timer        // ends it while it has no session, or a session that nobody expires
	heard     time.Time     // when its session was, if that is local
	stats     connStats
	// established is when the connection was made.
	established time.Time
}

// sessionID is 0 as long as there is no session.
func (c *conn) sessionID() int64 {
	if c.sess == nil {
		return 0
	}
	return c.sess.id
}

// startConn takes over an accepted connection, or returns why there are too many. The
// caller holds mu.
func (s *Server) startConn(e *Endpoint, nc net.Conn) (full string) {
	ip := remoteIP(nc)
	if full := s.full(e, ip); full != "" {
		return full
	}
	e.perIP[ip]++
	s.lastConn++
	c := &conn{
		s: s, ep: e, rep: e.rep, id: s.lastConn, nc: nc, ip: ip,
		br:          bufio.NewReaderSize(nc, readBuffer),
		out:         newOutQueue(&s.queued),
		done:        make(chan struct{}),
		released:    make(chan struct{}),
		stats:       newConnStats(),
		established: time.Now(),
	}
	c.client.IDs, c.client.Events = []tree.Identity{{Scheme: "ip", ID: ip}}, c
	s.conns[c] = struct{}{}
	s.limitHandshake(c)
	if e.unreachable {
		s.swallow(c, 0)
	}
	s.wg.Add(2)
	go c.readLoop()
	go c.writeLoop()
	return ""
}

// limitHandshake closes c at a multiple of handshakeTime if it has no session by
// then. A server that is frozen, or that hangs in its handshakes, closes nothing.
func (s *Server) limitHandshake(c *conn) {
	age := time.Since(s.base)
	due := (age/handshakeTime + 2) * handshakeTime
	c.handshake = s.afterFunc(due-age, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case c.closed || c.sess != nil || c.hung || c.hole.Load():
		case c.ep.thaw != nil || s.elapsed(time.Now()) < s.notBefore:
			s.limitHandshake(c)
		default:
			s.hangUp(c)
		}
	})
}

// hangUp ends c: its watches are gone and its session is without a connection.
// What is queued is still written, if the peer reads. The caller holds mu.
func (s *Server) hangUp(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	c.handshake.stop()
	c.rep.watches.Drop(&c.client)
	if sess := c.sess; sess != nil {
		if sess.conn == c {
			sess.conn = nil
		}
		sess.conns = slices.DeleteFunc(slices.Clone(sess.conns), func(other *conn) bool { return other == c })
	}
	delete(s.conns, c)
	s.en.discard(c.rep)
	perIP := c.ep.perIP
	if perIP[c.ip]--; perIP[c.ip] == 0 {
		delete(perIP, c.ip)
	}
	close(c.done)
	// Whoever does not read must not keep the writer for ever.
	_ = c.nc.SetWriteDeadline(time.Now().Add(flushTime))
}

// end is hangUp for those who do not hold mu. A connection whose bytes go nowhere
// does not end by what happens at its other side.
func (s *Server) end(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.hole.Load() {
		s.hangUp(c)
	}
}

func (c *conn) readLoop() {
	defer c.s.wg.Done()
	defer c.s.end(c)
	for {
		frame, err := c.nextFrame()
		if err != nil {
			return
		}
		c.awaitReader()
		if !c.serve(frame) {
			// Swallowed from here on, until somebody closes the socket.
			_, _ = io.Copy(io.Discard, c.br)
			return
		}
	}
}

// nextFrame reads one request. What it returns is good until the next call.
func (c *conn) nextFrame() ([]byte, error) {
	if err := c.await(4); err != nil {
		return nil, err
	}
	if c.fourLetterWord() {
		return nil, io.EOF
	}
	head, _ := c.br.Peek(4)
	n := int(int32(binary.BigEndian.Uint32(head)))
	if n <= 0 || n > c.s.cfg.MaxFrame {
		return nil, io.ErrUnexpectedEOF
	}
	_, _ = c.br.Discard(4)
	if n <= readBuffer {
		if err := c.await(n); err != nil {
			return nil, err
		}
		frame, _ := c.br.Peek(n)
		_, _ = c.br.Discard(n)
		return frame, nil
	}
	c.out.kick()
	return c.readBig(n)
}

// readBig believes in the announced length only as far as bytes come in.
func (c *conn) readBig(n int) ([]byte, error) {
	frame := c.big[:0]
	for len(frame) < n {
		step := min(n-len(frame), max(readBuffer, len(frame)))
		start := len(frame)
		frame = append(frame, make([]byte, step)...)
		if _, err := io.ReadFull(c.br, frame[start:]); err != nil {
			return nil, err
		}
	}
	if cap(frame) <= keptBuffer {
		c.big = frame
	}
	return frame, nil
}

// await waits until n bytes can be peeked at. Before it waits for the peer, the
// peer gets all the answers there are.
func (c *conn) await(n int) error {
	if c.br.Buffered() >= n {
		return nil
	}
	c.out.kick()
	_, err := c.br.Peek(n)
	return err
}
