package wire

import (
	"bufio"
	"fmt"
)

// A stream reads and handles the frames of a Conn, in one goroutine.
type stream struct {
	w      *Conn
	in     *bufio.Reader
	shaken bool // the handshake was answered
}

// read handles frames until the end of the connection, and returns its reason.
func (s *stream) read() error {
	for {
		frame, err := s.readFrame()
		if err == nil {
			err = s.handle(frame)
		}
		if err == nil {
			continue
		}
		s.w.BlameStall()
		err = fmt.Errorf("read: %w", err)
		if !s.shaken {
			err = &UnansweredError{err}
		}
		return err
	}
}

func (s *stream) handle(frame []byte) error {
	h := s.w.cfg.Handler
	if !s.shaken {
		s.shaken = true
		return s.shakeHands(frame)
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
	// Before the call is taken: if Header fails, End settles the call like a call without
	// an answer.
	if err := h.Header(zxid, code, ours); err != nil {
		return err
	}
	s.w.mu.Lock()
	if !ours {
		s.w.pending.auths--
		asked := xid == xidAuth && s.w.pending.auths >= 0
		s.w.mu.Unlock()
		if !asked {
			return errUnsolicited
		}
		return h.Authenticated(code)
	}
	// An answer stands for every event ahead of it, and the events ahead of setWatches' answer
	// may be lost with that answer. So the call stays pending, and is settled by End like a
	// call without an answer.
	if code != CodeUnimplemented && s.w.pending.hidesEvents(xid) {
		s.w.mu.Unlock()
		return errSkipped
	}
	c, skipped := s.w.pending.take(xid)
	s.w.mu.Unlock()
	if c == nil {
		return fmt.Errorf("%w: for a request %d that was never made", ErrMalformed, xid)
	}
	c.Code, c.Body, c.Zxid = code, d.B, zxid
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
