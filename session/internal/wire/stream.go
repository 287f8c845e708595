package wire

import (
	"bufio"
	"fmt"
	"net"
	"time"
)

// A stream is a Conn as go-zookeeper sees it: it has the frames that are meant for
// go-zookeeper. Write never blocks and never fails.
type stream struct {
	net.Conn
	w *Conn

	greeted bool            // the ConnectRequest was sent
	hello   ConnectResponse // with the fields of the ConnectRequest

	// Of the reader alone:
	in      *bufio.Reader
	deliver []byte // bytes that go-zookeeper has yet to read
	shaken  bool
	ponged  time.Time     // see pong
	pace    time.Duration // likewise
}

// Write handles a frame of go-zookeeper.
func (s *stream) Write(p []byte) (int, error) {
	// go-zookeeper can leave goroutines behind when a write fails. So Write succeeds even on
	// a closed connection, and the reader reports the end.
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case s.w.closed:
	// go-zookeeper writes a whole frame by each call of Write, and its first frame is the
	// ConnectRequest.
	case !s.greeted:
		s.greeted = true
		s.w.push(s.hello.adjustConnect(p, s.w.cfg.Handler.LastZxid()))
	default:
		d := Decoder{B: p}
		d.Int()
		// A ping stays here, because the session decides when it sends a request to the
		// server; see pong. The only other request of go-zookeeper is closeSession.
		if xid, op := d.Int(), d.Int(); op != OpPing {
			s.w.pending.closing = xid
			s.w.push(p)
		}
	}
	return len(p), nil
}

// SetWriteDeadline does nothing, because Write does not block.
func (s *stream) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline sets the time limit after which go-zookeeper drops a silent connection.
// See arrivals.
func (s *stream) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		s.w.arrivals.patience = 0
		return s.Conn.SetReadDeadline(t)
	}
	s.w.arrivals.patience = min(time.Until(t), maxPatience)
	return nil
}

// Read gives go-zookeeper its frames, and handles the other frames on the way.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.deliver) == 0 {
		frame, err := s.readFrame()
		if err == nil {
			err = s.handle(frame)
		}
		if err != nil {
			s.w.BlameStall()
			why := fmt.Errorf("read: %w", err)
			if !s.shaken {
				why = &UnansweredError{why}
			}
			s.w.End(why)
			// If another goroutine ends the connection, its Handler.Ended may still run:
			// go-zookeeper must not connect anew before that, or the end of this connection
			// is taken for the end of the next one.
			<-s.w.ended
			return 0, err
		}
	}
	n := copy(p, s.deliver)
	s.deliver = s.deliver[n:]
	return n, nil
}

func (s *stream) handle(frame []byte) (err error) {
	h := s.w.cfg.Handler
	if !s.shaken {
		s.shaken = true
		s.deliver, err = s.shakeHands(frame)
		return err
	}
	d := Decoder{B: frame[4:]}
	// Our own xids begin at firstXid and count downwards. go-zookeeper counts upwards from 1.
	xid, zxid, code := d.Int(), d.Long(), d.Int()
	ours := xid <= firstXid || xid == xidPing
	switch {
	case d.Bad:
		return fmt.Errorf("%w: a frame of %d bytes", ErrMalformed, len(frame)-4)
	case xid == xidEvent:
		return h.Event(d.B)
	}
	// Before the call is taken: if Header fails, End settles the call like a call without
	// an answer.
	if err := h.Header(zxid, code, ours); err != nil {
		return err
	}
	s.w.mu.Lock()
	var c *Call
	var skipped, hidden, asked bool
	switch {
	// An answer stands for every event ahead of it, and the events ahead of setWatches' answer
	// may be lost with that answer. So the call stays pending, and is settled by End like a
	// call without an answer.
	case ours && code != CodeUnimplemented && s.w.pending.hidesEvents(xid):
		hidden = true
	case ours:
		c, skipped = s.w.pending.take(xid)
	case xid == xidAuth:
		s.w.pending.auths--
		asked = s.w.pending.auths >= 0
	default:
		asked = xid != 0 && xid == s.w.pending.closing
		s.w.pending.closing = 0 // another such answer is unsolicited
		s.w.sessionClosed = asked && code == 0
	}
	s.w.mu.Unlock()
	switch {
	case hidden:
		return errSkipped
	case ours && c == nil:
		return fmt.Errorf("%w: for a request %d that was never made", ErrMalformed, xid)
	case !ours && !asked:
		return errUnsolicited
	case xid == xidAuth:
		return h.Authenticated(code)
	case !ours:
		s.deliver = frame
		return nil
	}
	// The answer is not for go-zookeeper, which may need a sign of life in its place.
	c.Code, c.Body = code, d.B
	s.deliver = s.pong()
	// Done first, so that the lease has the evidence of the answer when the caller asks for
	// it.
	h.Done(c)
	c.finish()
	if skipped && code != CodeUnimplemented {
		// A server answers in order, except that it refuses at once an operation that it
		// does not know. So an answer was lost and will not arrive. The callers that wait
		// for it learn this from the end of the connection.
		return errSkipped
	}
	return nil
}

// Close is called by go-zookeeper when it is done with the connection.
func (s *stream) Close() error {
	s.w.End(net.ErrClosed)
	return nil
}
