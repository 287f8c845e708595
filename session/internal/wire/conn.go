package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// firstXid is where our own requests begin to count, downwards. go-zookeeper
// counts upwards from 1, and the xids down to -8 have meanings in the protocol.
const firstXid int32 = -1000

const (
	xidEvent int32 = -1
	xidPing  int32 = -2 // of the answer to a ping, whatever xid the ping had
	xidAuth  int32 = -4
)

// A Handler takes in the frames of a connection. Its methods must not block. Except for
// Ended and for a call of Done with an error, they run in the goroutine that reads the
// connection, in the order of the frames. An error of a method ends the connection.
type Handler interface {
	// LastZxid returns the newest zxid that the session has seen. A server that is
	// further behind must refuse the session.
	LastZxid() int64
	// Connected decides about the answer to the handshake. It returns the session
	// timeout for go-zookeeper, or 0 if the session is over.
	Connected(*ConnectResponse) (time.Duration, error)
	// Event takes the record of a watch event.
	Event(record []byte) error
	// Header takes the header of an answer, ahead of the answer itself. ours reports
	// whether a Call waits for the answer.
	Header(zxid int64, code int32, ours bool) error
	// Authenticated takes the answer to credentials.
	Authenticated(code int32) error
	// Done takes the outcome of a call before its caller does.
	Done(*Call)
	// Ended learns that the connection is over, before the callers learn it.
	Ended(why error)
}

// A Config describes a connection.
type Config struct {
	Conn      net.Conn // TLS where that is spoken
	Raw       net.Conn // below TLS: closing it cannot block
	Number    uint64   // of all the connections of a Manager
	Server    string
	MaxAnswer int // in bytes
	Handler   Handler

	// TooLarge and TooSlow return the reason why an answer was not received to its end.
	TooLarge func(size, limit int) error
	TooSlow  func(got, size int, took time.Duration) error
	// Silent reports that a number of requests is unanswered, and nothing has arrived for
	// a while.
	Silent func(waited time.Duration, requests int)
}

// A Conn is one connection to a server, shared by two users. go-zookeeper,
// which holds it as a net.Conn, shakes hands, pings and closes the session;
// our own requests travel beside it under negative xids, and their answers and
// all watch events are taken out of the stream that go-zookeeper sees. That way
// a request can be given up when its ctx ends, is never queued from one session
// into the next, and cannot wedge go-zookeeper's loops.
//
// Write never blocks and never fails: a failing connection is closed, and the
// reader ends it, because go-zookeeper can leave goroutines behind when a write
// fails.
type Conn struct {
	net.Conn
	Number uint64 // as in the Config, as is Server
	Server string
	cfg    Config
	arrivals

	mu      sync.Mutex
	timer   *time.Timer   // see Limit
	filled  sync.Cond     // out has something, or closed
	ended   chan struct{} // closed at the end of End
	out     []byte
	closed  bool
	pending pending
	blamed  int32       // the request whose answer has cost the connection
	guilty  *LostAnswer // why; nil if there is no such request
	silence silence
	greeted bool            // the ConnectRequest was sent
	hello   ConnectResponse // with the fields of the ConnectRequest

	// Of the reader alone:
	in      *bufio.Reader
	deliver []byte // bytes that go-zookeeper has yet to read
	shaken  bool
	ponged  time.Time     // see pong
	pace    time.Duration // likewise
}

// New returns a connection on which nothing was sent yet. The caller calls Run in a
// goroutine of its own, and go-zookeeper reads.
func New(cfg Config) *Conn {
	w := &Conn{Conn: cfg.Conn, Number: cfg.Number, Server: cfg.Server, cfg: cfg, ended: make(chan struct{})}
	w.pending.lastXid = firstXid + 1
	w.conn = cfg.Conn
	w.in = bufio.NewReaderSize(&w.arrivals, 32<<10)
	w.filled.L = &w.mu
	return w
}

// Limit ends the connection with why unless Limit is called again within d, or with 0
// for no limit.
func (w *Conn) Limit(d time.Duration, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if d > 0 && !w.closed {
		w.timer = time.AfterFunc(d, func() { w.End(why) })
	}
}

// Closed reports whether the connection is over.
func (w *Conn) Closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// Write takes a frame of go-zookeeper's.
func (w *Conn) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
	case !w.greeted:
		w.greeted = true
		w.push(w.hello.adjustConnect(p, w.cfg.Handler.LastZxid()))
	case isPing(p):
		// The session decides when the server is asked; see pong.
	default:
		d := Decoder{B: p}
		d.Int()
		w.pending.zkXids = append(w.pending.zkXids, d.Int())
		w.push(p)
	}
	return len(p), nil
}

// isPing says whether a frame of go-zookeeper's is a ping.
func isPing(frame []byte) bool {
	d := Decoder{B: frame}
	d.Int()
	d.Int()
	return d.Int() == OpPing && !d.Bad
}

// push appends to the next batch of the writer; w.mu is held.
func (w *Conn) push(p []byte) {
	w.out = append(w.out, p...)
	w.filled.Signal()
}

// SetWriteDeadline is for a Write that blocks; ours does not.
func (w *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline takes the limit by which go-zookeeper drops a silent connection.
// See arrivals.
func (w *Conn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		w.patience = 0
		return w.Conn.SetReadDeadline(t)
	}
	w.patience = min(time.Until(t), maxPatience)
	return nil
}

// Send sends a request. If the connection is over, the call fails with ErrUnsent.
func (w *Conn) Send(r *Request) *Call {
	c := &Call{Request: r, Conn: w.Number, done: make(chan struct{})}
	w.send(c)
	return c
}

// SendThen sends a request and hands its outcome to then: in the goroutine that reads
// the connection, or at once if the connection is over. then must not block.
func (w *Conn) SendThen(r *Request, then func(*Call)) {
	c := &Call{Request: r, Conn: w.Number}
	c.Abandon(then)
	w.send(c)
}

func (w *Conn) send(c *Call) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		c.Err = ErrUnsent
		c.finish()
		return
	}
	w.pending.add(c)
	w.silence.start(w.reportSilence)
	w.frame(c.xid, c.Op, c.Record)
	w.mu.Unlock()
}

// Authenticate sends credentials.
func (w *Conn) Authenticate(scheme string, credential []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.pending.auths++
		w.frame(xidAuth, opAuth, Encoder(nil).Int(0).String(scheme).Buffer(credential))
	}
}

// frame appends a request to the next batch of the writer; w.mu is held.
func (w *Conn) frame(xid, op int32, record []byte) {
	w.out = append(Encoder(w.out).Int(int32(HeaderSize+len(record))).Int(xid).Int(op), record...)
	w.filled.Signal()
}

// Run is the writer. Requests that are sent during one write go out in the next.
func (w *Conn) Run() {
	// go-zookeeper closes a connection after it has reported the end of its loop. A
	// caller that waits for Run waits for End, too, and so for its log line.
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
			w.End(fmt.Errorf("write: %w", err))
			return
		}
		if cap(batch) > 1<<20 {
			batch = nil
		}
	}
}

// Read gives go-zookeeper the frames that are meant for it, and deals with the
// others on the way.
func (w *Conn) Read(p []byte) (int, error) {
	for len(w.deliver) == 0 {
		frame, err := w.readFrame()
		if err == nil {
			err = w.handle(frame)
		}
		if err != nil {
			w.BlameStall()
			why := fmt.Errorf("read: %w", err)
			if !w.shaken {
				why = &UnansweredError{why}
			}
			w.End(why)
			return 0, err
		}
	}
	n := copy(p, w.deliver)
	w.deliver = w.deliver[n:]
	return n, nil
}

func (w *Conn) handle(frame []byte) (err error) {
	h := w.cfg.Handler
	if !w.shaken {
		w.shaken = true
		w.deliver, err = w.shakeHands(frame)
		return err
	}
	d := Decoder{B: frame[4:]}
	xid, zxid, code := d.Int(), d.Long(), d.Int()
	ours := xid <= firstXid || xid == xidPing
	switch {
	case d.Bad:
		return fmt.Errorf("%w: a frame of %d bytes", ErrMalformed, len(frame)-4)
	case xid == xidEvent:
		return h.Event(d.B)
	}
	if err := h.Header(zxid, code, xid <= firstXid); err != nil {
		return err
	}
	w.mu.Lock()
	var c *Call
	var skipped, asked bool
	switch {
	case ours:
		c, skipped = w.pending.take(xid)
	case xid == xidAuth:
		asked = w.pending.takeAuth()
	default:
		asked = w.pending.takeZK(xid)
	}
	w.mu.Unlock()
	switch {
	case ours && c == nil:
		return fmt.Errorf("%w: for a request %d that was never made", ErrMalformed, xid)
	case !ours && !asked:
		return errUnsolicited
	case xid == xidAuth:
		return h.Authenticated(code)
	case !ours:
		w.deliver = frame
		return nil
	}
	c.Code, c.Body = code, d.B
	w.deliver = w.pong()
	h.Done(c)
	c.finish()
	if skipped && code != CodeUnimplemented {
		// A server answers in order, except that it refuses at once an
		// operation that it does not know. So an answer was lost, and will not come: the end of
		// the connection tells the callers that wait for it.
		return errSkipped
	}
	return nil
}

// Close is called by go-zookeeper when it is done with the connection.
func (w *Conn) Close() error {
	w.End(net.ErrClosed)
	return nil
}

// End closes the connection, once, and settles the calls that are pending.
func (w *Conn) End(why error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	calls, blamed, guilty := w.pending.calls, w.blamed, w.guilty
	w.pending.calls, w.out = nil, nil
	w.filled.Signal()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.silence.stop()
	w.mu.Unlock()

	// The reader and the callers look for another connection as soon as they
	// hear of it, so this one is taken away, and its server put last, before.
	w.cfg.Handler.Ended(why)
	w.cfg.Raw.Close()
	if len(calls) > 0 {
		calls[0].Refused = errors.Is(why, io.EOF) || errors.Is(why, syscall.ECONNRESET)
	}
	for _, c := range calls {
		c.Err = ErrConnectionLost
		if guilty != nil && c.xid == blamed {
			c.Err = guilty
		}
		w.cfg.Handler.Done(c)
		c.finish()
	}
	close(w.ended)
}
