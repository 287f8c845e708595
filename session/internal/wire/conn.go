package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A Handler handles the frames of a connection. Its methods must not block. Except for
// TooSlow, Silent, Ended and for a call of Done with an error, they run in the goroutine that reads the
// connection, in the order of the frames. An error of a method ends the connection.
type Handler interface {
	// Connected handles the answer to the handshake.
	Connected(*ConnectResponse) error
	// Event handles the record of a watch event.
	Event(record []byte) error
	// Header handles the header of an answer, before the answer itself. ours reports
	// whether a Call waits for the answer.
	Header(zxid int64, code int32, ours bool) error
	// Authenticated handles the answer to credentials.
	Authenticated(code int32) error
	// Done handles the outcome of a call before its caller does.
	Done(*Call)
	// TooLarge and TooSlow return the reason why an answer was not received to its end.
	TooLarge(size, limit int) error
	TooSlow(got, size int, took time.Duration) error
	// Silent reports that a number of requests is unanswered, and nothing has arrived for
	// a while.
	Silent(waited time.Duration, requests int)
	// Ended handles the end of the connection, before the callers learn of it.
	Ended(why error)
}

// A Config describes a connection.
type Config struct {
	Conn      net.Conn // the TLS connection, or Raw
	Raw       net.Conn // below TLS: closing it cannot block
	Number    uint64   // of all the connections of a Manager
	Server    string
	MaxAnswer int // in bytes
	Hello     ConnectRequest
	Handler   Handler
}

// A Conn is one connection to a server. A request can be given up when its ctx ends, and is
// never queued from one connection into the next.
type Conn struct {
	Number   uint64 // as in the Config, as is Server
	Server   string
	cfg      Config
	arrivals arrivals
	stream   stream

	mu      sync.Mutex
	timer   *time.Timer   // see Limit
	filled  sync.Cond     // out has something, or closed
	ended   chan struct{} // closed at the end of End
	out     []byte
	closed  bool
	pending pending
	silence silence
	askedAt time.Time      // when the ConnectRequest was written
	reports sync.WaitGroup // calls of reportSilence
}

// New returns a connection on which nothing was sent yet. The caller calls Run.
func New(cfg Config) *Conn {
	w := &Conn{Number: cfg.Number, Server: cfg.Server, cfg: cfg, ended: make(chan struct{})}
	// The first request subtracts 1 and gets firstXid.
	w.pending.lastXid = firstXid + 1
	w.arrivals.conn = cfg.Conn
	w.stream = stream{w: w, in: bufio.NewReaderSize(&w.arrivals, 32<<10)}
	w.filled.L = &w.mu
	return w
}

// LastArrival returns the time at which the newest bytes arrived.
func (w *Conn) LastArrival() time.Time {
	w.arrivals.mu.Lock()
	defer w.arrivals.mu.Unlock()
	return w.arrivals.newest
}

// Arriving returns the answer of which some bytes have arrived, and the number of
// these bytes. ok is false while no answer is arriving.
func (w *Conn) Arriving() (p Partial, got int, ok bool) {
	a := &w.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.partial, int(a.received - a.partial.from), !a.partial.Began.IsZero()
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
	// End has stopped the timer of a closed connection, and would not stop another one.
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

// Send sends a request. If the connection is over, the call fails with ErrUnsent.
func (w *Conn) Send(r *Request) *Call {
	c := &Call{Request: r, Conn: w.Number, done: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		// Without mu, because finish calls functions of the caller, and these may use the
		// connection.
		c.Err = ErrUnsent
		c.finish()
		return c
	}
	// Under one lock with frame: the answers come in the order of the frames.
	w.pending.add(c)
	w.silence.start(w.reportSilence)
	w.frame(c.xid, c.Op, c.Record)
	w.mu.Unlock()
	return c
}

// Authenticate sends credentials.
func (w *Conn) Authenticate(scheme string, credential []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		// All answers to credentials have the same xid, so they can only be counted.
		w.pending.auths++
		w.frame(xidAuth, opAuth, AuthRecord(scheme, credential))
	}
}

// AuthRecord encodes the record of Authenticate.
func AuthRecord(scheme string, credential []byte) []byte {
	return Encoder(nil).Int(0).String(scheme).Buffer(credential)
}

// frame appends a request to the next batch of the writer; w.mu is held.
func (w *Conn) frame(xid, op int32, record []byte) {
	w.out = append(Encoder(w.out).Int(int32(HeaderSize+len(record))).Int(xid).Int(op), record...)
	w.filled.Signal()
}

// Run shakes hands, and reads and writes frames until the end of the connection, which the
// Handler knows when Run returns.
func (w *Conn) Run() {
	w.mu.Lock()
	w.askedAt = time.Now()
	w.out = append(w.cfg.Hello.frame(), w.out...)
	w.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(w.write)
	w.End(w.stream.read())
	// If another goroutine ends the connection, its Handler.Ended may still run: the next
	// connection must not begin before that, or the end of this one is taken for its end.
	<-w.ended
	writer.Wait()
	w.reports.Wait()
}

// write writes the frames. Requests that are sent during one write are in the next write.
func (w *Conn) write() {
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
		// Two buffers take turns, so that a busy connection allocates none.
		batch, w.out = w.out, batch[:0]
		w.mu.Unlock()
		// Without mu: the write blocks while the server does not read, and Send must not
		// block.
		if _, err := w.cfg.Conn.Write(batch); err != nil {
			w.End(fmt.Errorf("write: %w", err))
			return
		}
		// One large write must not occupy its memory as long as the connection lives.
		if cap(batch) > 1<<20 {
			batch = nil
		}
	}
}

// End closes the connection, once, and settles the calls that are pending.
func (w *Conn) End(why error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	// From now on no call is added, so every call is either in calls or fails as unsent.
	w.closed = true
	calls := w.pending.calls
	w.pending.calls, w.out = nil, nil
	w.filled.Signal()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.silence.stop()
	w.mu.Unlock()

	// Ended comes first: the reader and the callers look for another connection as soon
	// as they learn of the end. By then this connection is out of use, and its server is
	// last.
	w.cfg.Handler.Ended(why)
	// Not the TLS connection: its Close writes an alert, which may take seconds.
	w.cfg.Raw.Close()
	if len(calls) > 0 && (errors.Is(why, io.EOF) || errors.Is(why, syscall.ECONNRESET) || errors.Is(why, syscall.EPIPE)) {
		// The server answers in order, so only the first request can be the reason, or the size of
		// a request behind it: the server looks at sizes before it answers.
		calls[0].Refused = true
		slices.MaxFunc(calls, func(a, b *Call) int { return len(a.Record) - len(b.Record) }).Suspect = true
	}
	for _, c := range calls {
		c.Err = ErrConnectionLost
		if c.guilty != nil {
			c.Err = c.guilty
		}
		w.cfg.Handler.Done(c)
		c.finish()
	}
	close(w.ended)
}
