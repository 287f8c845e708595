package zkserver

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"iter"
	"maps"
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
	s.conns.last++
	c := &conn{
		s: s, ep: e, rep: e.rep, id: s.conns.last, nc: nc, ip: ip,
		br:          bufio.NewReaderSize(nc, readBuffer),
		out:         newOutQueue(&s.conns.queued),
		done:        make(chan struct{}),
		released:    make(chan struct{}),
		stats:       newConnStats(),
		established: time.Now(),
	}
	c.client.IDs, c.client.Events = []tree.Identity{{Scheme: "ip", ID: ip}}, c
	s.conns.open[c] = struct{}{}
	c.limitHandshake()
	if e.unreachable {
		c.swallow(0)
	}
	s.wg.Add(2)
	go c.readLoop()
	go c.writeLoop()
	return ""
}

// limitHandshake closes c at a multiple of handshakeTime if it has no session by
// then. A server that is frozen, or that hangs in its handshakes, closes nothing.
func (c *conn) limitHandshake() {
	s := c.s
	age := time.Since(s.base)
	due := (age/handshakeTime + 2) * handshakeTime
	c.handshake = s.afterFunc(due-age, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case c.closed || c.sess != nil || c.hung || c.hole.Load():
		case c.ep.thaw != nil || s.elapsed(time.Now()) < s.agenda.notBefore:
			c.limitHandshake()
		default:
			c.hangUp()
		}
	})
}

// hangUp ends c: its watches are gone and its session is without a connection.
// What is queued is still written, if the peer reads. The caller holds mu.
func (c *conn) hangUp() {
	s := c.s
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
	delete(s.conns.open, c)
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
func (c *conn) end() {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.hole.Load() {
		c.hangUp()
	}
}

func (c *conn) readLoop() {
	defer c.s.wg.Done()
	defer c.end()
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

// result is what became of a request. Its record is in conn.reply.
type result struct {
	code   Code
	zxid   int64
	silent bool // nothing is answered
	lost   bool // it was carried out, and nothing of that comes back
	hangUp bool // the connection ends after the answer
	whole  bool // the answer has its record although the code is an error
}

// A connTable has the connections of the server, and what faults do to them.
type connTable struct {
	open        map[*conn]struct{}
	last        uint64          // the number of the latest connection
	lastPort    int             // the number of connections in memory so far
	queued      atomic.Int64    // bytes that wait for all clients
	hang        bool            // ConnectRequests get no answer
	partitioned map[int64]bool  // sessions
	holes       map[*conn]int64 // black-holed connections and their sessions
}

// ordered lists all open connections.
func (t *connTable) ordered() []*conn { return t.that(func(*conn) bool { return true }) }

// on lists the open connections to e.
func (t *connTable) on(e *Endpoint) []*conn {
	return t.that(func(c *conn) bool { return c.ep == e })
}

// that lists the open connections for which are returns true, in the order in which they
// came.
func (t *connTable) that(are func(*conn) bool) []*conn {
	var list []*conn
	for c := range t.open {
		if are(c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, byAge)
	return list
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.nc.Close()
	}
}

// of lists the open connections of a session, even if the session has ended.
func (t *connTable) of(id int64) []*conn {
	return t.that(func(c *conn) bool { return c.sess != nil && c.sess.id == id })
}

// heal closes the black-holed connections for which were returns true, in the order in
// which they came.
func (t *connTable) heal(were func(*conn) bool) {
	for _, c := range sorted(maps.Keys(t.holes)) {
		if were(c) {
			c.hangUp()
			c.release()
		}
	}
}

func byAge(a, b *conn) int { return cmp.Compare(a.id, b.id) }

// sorted lists connections in the order in which they came.
func sorted(conns iter.Seq[*conn]) []*conn {
	return slices.SortedFunc(conns, byAge)
}
