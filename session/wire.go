package session

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// firstXid is where our own requests begin to count, downwards. go-zookeeper
// counts upwards from 1, and the xids down to -8 have meanings in the protocol.
const firstXid int32 = -1000

const (
	xidWatchEvent int32 = -1
	xidPing       int32 = -2 // of the answer to any ping, whatever xid that had
	xidAuth       int32 = -4
)

// errUnsent is the outcome of a call that never reached the connection, so it
// certainly did not happen.
var errUnsent = errors.New("session: not sent")

// errUnsolicited ends a connection on which an answer came to a request that was
// never made. No server sends such an answer, and a flood of them would cost the
// process a core.
var errUnsolicited = fmt.Errorf("%w: to a request that was never made", errMalformed)

// errSkipped ends a connection on which an answer is missing.
var errSkipped = errors.New("the server has left out an answer")

// A wire is one connection to a server, shared by two users. go-zookeeper,
// which holds it as a net.Conn, shakes hands, pings and closes the session;
// our own requests travel beside it under negative xids, and their answers and
// all watch events are taken out of the stream that go-zookeeper sees. That way
// a request can be given up when its ctx ends, is never queued from one session
// into the next, and cannot wedge go-zookeeper's loops.
//
// Write never blocks and never fails: a failing connection is closed, and the
// reader ends it, because go-zookeeper can leave goroutines behind when a write
// fails.
type wire struct {
	net.Conn          // TLS where that is spoken
	raw      net.Conn // below TLS: closing it cannot block
	s        *Session
	sasl     *saslState // until the connection is authenticated; nil without WithSASL
	number   uint64     // of all the connections of this Manager
	server   string

	mu      sync.Mutex
	timer   *time.Timer   // see limit
	filled  sync.Cond     // out has something, or closed
	ended   chan struct{} // closed when end has done all that it does
	out     []byte
	closed  bool
	lastXid int32
	zkXids  []int32    // the requests of go-zookeeper that are unanswered
	pending []inFlight // in the order in which they were sent, and are answered
	newest  time.Time  // when the newest request was written
	leader  time.Time  // when the newest request was written that a leader answers
	arrived time.Time  // when the newest bytes arrived

	received int64 // bytes
	partial  partialAnswer
	blamed   int32        // the request whose answer has cost the connection
	blame    *answerError // why; nil if there is no such request

	silence      *time.Timer // see watchSilence
	watching     bool        // silence runs
	silencePause time.Duration

	// What go-zookeeper asked for in its ConnectRequest.
	asked   int64
	askedAt time.Time
	hello   bool // the ConnectRequest has been seen

	// Of the reader alone:
	in       *bufio.Reader
	patience time.Duration // for silence, see SetReadDeadline
	deliver  []byte        // what go-zookeeper has yet to read
	shaken   bool
	record   *record
	auths    int           // answers to credentials
	arming   int           // requests to arm watches again that are unanswered
	ponged   time.Time     // see pong
	pace     time.Duration // likewise
}

type inFlight struct {
	xid int32
	c   *call
}

func newWire(s *Session, conn, raw net.Conn, number uint64, server string) *wire {
	w := &wire{
		Conn: conn, raw: raw, s: s, number: number, server: server,
		lastXid: firstXid + 1, ended: make(chan struct{}),
	}
	w.in = bufio.NewReaderSize(arrivals{w}, 32<<10)
	w.filled.L = &w.mu
	return w
}

// unanswered returns for how long the server has sent nothing though a request
// waits for its answer.
func (w *wire) unanswered(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 {
		return 0
	}
	since := w.pending[0].c.sent
	if w.arrived.After(since) {
		since = w.arrived
	}
	return now.Sub(since)
}

// lastRequest returns when the newest request was written, and the newest one
// that a leader answers.
func (w *wire) lastRequest() (any, leader time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest, w.leader
}

// What limit says has hung, see there.
const (
	theHandshake = "the handshake"
	theSync      = "the sync after the handshake"
)

// limit ends the connection unless limit is called again within d, or with 0
// for no limit. what is what has hung then.
func (w *wire) limit(d time.Duration, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if d > 0 && !w.closed {
		w.timer = time.AfterFunc(d, func() {
			err := fmt.Errorf("%s was not answered within %v", what, roundTime(d))
			if what == theHandshake {
				err = &unansweredError{err}
			}
			w.end(err)
		})
	}
}

func (w *wire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// Write takes a frame of go-zookeeper's.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(p), nil
	}
	if !w.hello {
		w.hello = true
		w.askedAt = time.Now()
		w.push(w.s.adjustConnect(p, &w.asked))
	} else if isPing(p) {
		// The keeper decides when the server is asked; see pong.
	} else {
		d := decoder{b: p}
		d.int()
		w.zkXids = append(w.zkXids, d.int())
		w.push(p)
	}
	return len(p), nil
}

// isPing says whether a frame of go-zookeeper's is a ping.
func isPing(frame []byte) bool {
	d := decoder{b: frame}
	d.int()
	d.int()
	return d.int() == opPing && !d.bad
}

// pong returns the answer to a ping for go-zookeeper, if the last one was a while
// ago. go-zookeeper gives up a connection on which it reads nothing; that the
// connection is alive shows in the answers to our own requests.
func (w *wire) pong() []byte {
	now := time.Now()
	if now.Sub(w.ponged) < w.pace {
		return nil
	}
	w.ponged = now
	return appendInt(appendLong(appendInt(appendInt(nil, 16), xidPing), 0), 0)
}

// push appends to what the writer sends next; w.mu is held.
func (w *wire) push(p []byte) {
	w.out = append(w.out, p...)
	w.filled.Signal()
}

// SetWriteDeadline is for a Write that blocks; ours does not.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// send puts one request of ours on the wire. fill appends the request's record.
// The outcome reaches c.finish, also if the wire has ended already.
func (w *wire) send(c *call, fill func([]byte) []byte) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		c.err = errUnsent
		c.finish()
		return
	}
	w.enqueue(c, fill)
	w.mu.Unlock()
}

// enqueue is send for callers that hold w.mu and know that w is open.
func (w *wire) enqueue(c *call, fill func([]byte) []byte) {
	if w.lastXid--; w.lastXid > firstXid { // wrapped around after two thousand million requests
		w.lastXid = firstXid
	}
	c.conn = w.number
	c.sent = time.Now()
	w.newest = c.sent
	if c.asksLeader() {
		w.leader = c.sent
	}
	w.pending = append(w.pending, inFlight{w.lastXid, c})
	if !w.watching {
		w.watchSilence()
	}
	w.frame(w.lastXid, c.op, fill)
}

func (w *wire) frame(xid, op int32, fill func([]byte) []byte) {
	start := len(w.out)
	b := appendInt(appendInt(append(w.out, 0, 0, 0, 0), xid), op)
	if fill != nil {
		b = fill(b)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	w.out = b
	w.filled.Signal()
}

// run is the writer. Whatever piled up during one write goes out in the next.
func (w *wire) run() {
	// go-zookeeper closes a connection after it has reported the end of its loop. The
	// shutdown of the link waits for run, and so for what end does, such as its log line.
	defer func() { <-w.ended }()
	var batch []byte
	for {
		w.mu.Lock()
		for len(w.out) == 0 && !w.closed {
			w.filled.Wait()
		}
		if w.closed {
			w.mu.Unlock()
			return
		}
		batch, w.out = w.out, batch[:0]
		w.mu.Unlock()
		if _, err := w.Conn.Write(batch); err != nil {
			w.end(fmt.Errorf("write: %w", err))
			return
		}
		if cap(batch) > 1<<20 {
			batch = nil
		}
	}
}

// Read gives go-zookeeper the frames that are meant for it, and deals with the
// others on the way.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.deliver) == 0 {
		frame, err := w.readFrame()
		if err == nil {
			err = w.handle(frame)
		}
		if err != nil {
			w.accuseCut()
			why := fmt.Errorf("read: %w", err)
			if !w.shaken {
				why = &unansweredError{why}
			}
			w.end(why)
			return 0, err
		}
	}
	n := copy(p, w.deliver)
	w.deliver = w.deliver[n:]
	return n, nil
}

func (w *wire) handle(frame []byte) error {
	if !w.shaken {
		w.shaken = true
		answer, err := w.s.shakeHands(w, frame)
		w.deliver = answer
		return err
	}
	d := decoder{b: frame[4:]}
	xid, zxid, code := d.int(), d.long(), d.int()
	if d.bad {
		return fmt.Errorf("%w: a frame of %d bytes", errMalformed, len(frame)-4)
	}
	if xid == xidWatchEvent {
		// Its zxid does not count as seen: other events of the same transaction
		// may follow, and must be told after a reconnect if they did not come.
		w.s.leases.hear()
		return w.s.hub.event(w.number, d.b)
	}
	w.s.sawZxid(zxid, w.arming == 0)
	switch {
	case xid == xidAuth:
		if w.auths++; w.auths > len(w.s.m.cfg.auth) {
			return errUnsolicited
		}
		w.s.leases.hear()
		if code != 0 {
			w.s.refuseAuth(code)
			return ErrAuthFailed
		}
	case xid <= firstXid && refusals[code].hangUp:
		// It speaks of the connection, and nothing was done: with the connection
		// ends the call, which is repeated on the next where that is safe.
		return errorOfCode(code)
	case xid <= firstXid || xid == xidPing:
		c, skipped := w.take(xid)
		if c == nil {
			return fmt.Errorf("%w: for a request %d that was never made", errMalformed, xid)
		}
		c.code, c.zxid, c.body = code, zxid, d.b
		if code == 0 && c.ofCaller() {
			w.s.useful.Store(true)
		}
		w.s.leases.answered(w.record, c)
		w.deliver = w.pong()
		w.observe(c)
		c.finish()
		if skipped && code != codeUnimplemented {
			// A server answers in order, except that it refuses at once what it
			// does not know. So an answer was lost, and will not come: the end of
			// the connection tells those who wait for it.
			return errSkipped
		}
	default:
		if !w.ofZK(xid) {
			return errUnsolicited
		}
		w.s.leases.hear()
		w.deliver = frame
	}
	return nil
}

// ofZK reports whether go-zookeeper has made the request that an answer is for, once.
func (w *wire) ofZK(xid int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.zkXids, xid)
	if i < 0 {
		return false
	}
	w.zkXids = slices.Delete(w.zkXids, i, i+1)
	return true
}

// take finds the request that an answer is for, and says whether older ones
// have not been answered.
func (w *wire) take(xid int32) (c *call, skipped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.pending, func(f inFlight) bool {
		return f.xid == xid || xid == xidPing && f.c.op == opPing
	})
	if i < 0 {
		return nil, false
	}
	c = w.pending[i].c
	if i == 0 {
		w.pending[0].c = nil
		w.pending = w.pending[1:]
		return c, false
	}
	w.pending = slices.Delete(w.pending, i, i+1)
	return c, true
}

// Close is called by go-zookeeper when it is done with the connection.
func (w *wire) Close() error {
	w.end(net.ErrClosed)
	return nil
}

// end closes the connection, once, and settles what was pending on it.
func (w *wire) end(why error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	pending, blamed, blame := w.pending, w.blamed, w.blame
	w.pending, w.out = nil, nil
	w.filled.Signal()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.silence != nil {
		w.silence.Stop()
	}
	w.mu.Unlock()

	// The reader and the callers look for another connection as soon as they
	// hear of it, so this one is taken away, and its server put last, before.
	w.s.detach(w, why)
	w.raw.Close()
	if len(pending) > 0 {
		pending[0].c.refused = errors.Is(why, io.EOF) || errors.Is(why, syscall.ECONNRESET)
	}
	for _, f := range pending {
		f.c.err = ErrConnectionLost
		if blame != nil && f.xid == blamed {
			f.c.err = &lostAnswer{blame}
		}
		w.observe(f.c)
		f.c.finish()
	}
	close(w.ended)
}
