package zkserver

import (
	"bufio"
	"cmp"
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
	// handshakeTime is the time that a connection may live without a session, rounded up to a
	// multiple of handshakeTime.
	handshakeTime = 10 * time.Second
)

// conn is one connection. One goroutine reads, decodes and executes its requests in order; another
// goroutine writes the queued frames.
type conn struct {
	s   *Server
	ep  *Endpoint
	id  uint64
	nc  net.Conn
	ip  string
	br  *bufio.Reader
	out outQueue
	// done is closed when the server has given up the connection; the socket is closed a little
	// later.
	done chan struct{}
	// hole is set while the bytes of this connection are dropped in both directions. released is
	// closed when the socket of such a connection may be closed.
	hole     atomic.Bool
	released chan struct{}
	traffic  atomic.Pointer[trafficCount]

	// The reader goroutine reuses these between requests.
	req   jute.Request
	reply []byte
	big   []byte // a frame that is larger than the buffer of br

	// Guarded by the server's mu.
	closed    bool
	why       string // reason for the close, if a limit made the server close the connection
	hung      bool   // its ConnectRequest was swallowed
	kept      bool   // HangHandshake swallowed it
	sess      *session
	client    tree.Client
	sasl      saslExchange
	timeout   time.Duration // as negotiated on this connection
	rep       *replica      // of its endpoint, or its own if a fault gave it one
	handshake *timer        // closes a connection without a session, or with a session that no leader expires
	heard     time.Time     // last time of activity of a local session
	stats     connStats
	// established is the time at which the connection was accepted.
	established time.Time
}

// sessionID returns the id of the session, or 0 without a session.
func (c *conn) sessionID() int64 {
	if c.sess == nil {
		return 0
	}
	return c.sess.id
}

// startConn starts serving an accepted connection, or returns the limit that the connection
// exceeds. The caller holds mu.
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

// limitHandshake closes c at a multiple of handshakeTime if c has no session by then. A frozen
// server, and a server that hangs in its handshakes, closes nothing.
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

// hangUp closes c for the server: it drops the watches of c and detaches the session. Queued frames
// are still written if the peer reads them within the session timeout. The caller holds mu.
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
	s.conns.closing[c] = struct{}{}
	s.en.discard(c.rep)
	perIP := c.ep.perIP
	if perIP[c.ip]--; perIP[c.ip] == 0 {
		delete(perIP, c.ip)
	}
	close(c.done)
	// A peer that does not read must not block the writer for ever. A limit may already have set a
	// deadline in the past.
	if !c.out.isEnded() {
		_ = c.nc.SetWriteDeadline(time.Now().Add(cmp.Or(c.timeout, handshakeTime)))
	}
}

// end calls hangUp with mu held. A black-holed connection stays open when its peer closes it.
func (c *conn) end() {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.hole.Load() {
		c.hangUp()
	}
}

// result is the result of a request. The record of the reply is in conn.reply.
type result struct {
	code   Code
	zxid   int64
	silent bool // nothing is answered
	lost   bool // the request was carried out, but no reply, event or change reaches the client
	hangUp bool // the connection ends after the answer
	whole  bool // the answer has a record although the code is an error
}

// A connTable holds the server's connections and the state of the faults that affect them.
type connTable struct {
	open        map[*conn]struct{}
	closing     map[*conn]struct{} // closed connections that may still write queued frames
	last        uint64             // number of the latest connection
	lastPort    int                // number of in-memory connections so far
	queued      atomic.Int64       // bytes that are queued for all clients
	hang        bool               // ConnectRequests get no answer
	partitioned map[int64]bool     // sessions
	holes       map[*conn]int64    // black-holed connections and their sessions
}

// ordered lists all open connections in the order in which they were accepted.
func (t *connTable) ordered() []*conn { return t.that(func(*conn) bool { return true }) }

// on lists the open connections to e.
func (t *connTable) on(e *Endpoint) []*conn {
	return t.that(func(c *conn) bool { return c.ep == e })
}

// that lists the open connections for which are returns true, in the order in which they were
// accepted.
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

// heal closes the black-holed connections for which were returns true, in the order in which they
// were accepted.
func (t *connTable) heal(were func(*conn) bool) {
	for _, c := range sorted(maps.Keys(t.holes)) {
		if were(c) {
			c.hangUp()
			c.release()
		}
	}
}

func byAge(a, b *conn) int { return cmp.Compare(a.id, b.id) }

// sorted lists connections in the order in which they were accepted.
func sorted(conns iter.Seq[*conn]) []*conn {
	return slices.SortedFunc(conns, byAge)
}
