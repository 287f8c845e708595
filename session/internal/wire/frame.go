package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	maxHandshake = 4 << 10 // a ConnectResponse has 41 bytes
	maxUnasked   = 2 << 20 // the path of an event has a mebibyte at most, by the default of jute.maxbuffer
)

// A Partial is an answer of which some bytes have arrived.
type Partial struct {
	Began time.Time // when its first bytes were read; zero if there is no such answer
	xid   int32
	size  int   // in bytes, with the length in front
	from  int64 // arrivals.received without any byte of the answer
}

// arrivals reads from a connection and records when bytes arrive: the bytes of an answer that is large or slow are a
// sign of life long before its end. An arrival is no evidence for the lease.
type arrivals struct {
	conn net.Conn

	mu       sync.Mutex
	newest   time.Time
	received int64 // bytes
	partial  Partial
}

func (a *arrivals) Read(p []byte) (int, error) {
	n, err := a.conn.Read(p)
	if n > 0 {
		a.mu.Lock()
		a.newest = time.Now()
		a.received += int64(n)
		a.mu.Unlock()
	}
	return n, err
}

// expect records the answer of which some bytes have arrived, none if p is zero.
func (a *arrivals) expect(p Partial) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.partial = p
}

// readFrame returns a frame with its length in front. It recognises servers that are
// not ZooKeeper's, and answers that are too large.
func (s *stream) readFrame() ([]byte, error) {
	head, err := s.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n, limit := int(int32(binary.BigEndian.Uint32(head))), s.w.cfg.MaxAnswer
	if !s.shaken {
		if err := foreign([4]byte(head)); err != nil {
			return nil, err
		}
		// The peer is unknown, so it must not make us wait for a large frame.
		return readAnswer(s.in, min(limit, maxHandshake))
	}
	// A frame that is in the buffer has arrived completely, so it needs no record.
	if n < 4 || n <= limit && s.in.Buffered() >= 4+n {
		return readAnswer(s.in, limit)
	}
	if head, err = s.in.Peek(8); err != nil {
		return nil, err
	}
	xid := int32(binary.BigEndian.Uint32(head[4:]))
	s.w.mu.Lock()
	asked := s.w.pending.has(xid)
	s.w.mu.Unlock()
	switch {
	// A hostile server must not fill the memory with frames that nobody has asked for. MaxAnswer does not
	// apply to events: the server would send the event again on each new connection.
	case !asked && n > maxUnasked:
		return nil, fmt.Errorf("%w: an unsolicited frame of %d bytes", ErrMalformed, n)
	case asked && n > limit:
		err := s.w.cfg.Handler.TooLarge(n, limit)
		s.w.blame(xid, &LostAnswer{err, GuiltOfAnswer})
		return nil, err
	}
	// Only this goroutine changes received.
	s.w.arrivals.expect(Partial{time.Now(), xid, 4 + n, s.w.arrivals.received - int64(s.in.Buffered())})
	frame, err := readAnswer(s.in, n)
	if err != nil {
		return nil, err // the partial answer stays, for the reason
	}
	s.w.arrivals.expect(Partial{})
	return frame, nil
}

// blame records that the answer to a request is the reason for the end of the connection. End reports the reason to
// the call.
func (w *Conn) blame(xid int32, why *LostAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.pending.calls {
		// Only the first reason counts: the other one may be a consequence.
		if c.xid == xid && c.guilty == nil {
			c.guilty = why
		}
	}
}

// Blame blames an answer that has arrived in part for the end of the connection, and returns the reason. If the
// answer is complete meanwhile, Blame does nothing and returns nil.
func (w *Conn) Blame(p Partial, now time.Time, guilt int) error {
	// The next answer must not be blamed for this one.
	current, got, _ := w.Arriving()
	if current != p {
		return nil
	}
	err := w.cfg.Handler.TooSlow(got, p.size, now.Sub(p.Began))
	if guilt > 0 {
		w.blame(p.xid, &LostAnswer{err, guilt})
	}
	return err
}

// BlameStall blames the answer that has arrived in part for the end of the stream. It
// does nothing if no answer has arrived in part.
func (w *Conn) BlameStall() {
	if p, _, ok := w.Arriving(); ok {
		// The network may have broken down in the middle of the answer.
		w.Blame(p, time.Now(), GuiltOfStall)
	}
}

// readAnswer returns a frame of limit bytes at most, with its length in front.
func readAnswer(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrMalformed, n)
	}
	// The buffer grows only as bytes arrive, so a length without bytes takes no memory. The buffer grows fast, so
	// that the smaller buffers of a large answer are a third of its size in all.
	const believed = 1 << 20
	frame := make([]byte, 4+min(n, believed))
	copy(frame, head[:])
	for at := 4; ; {
		if _, err := io.ReadFull(r, frame[at:]); err != nil {
			return nil, err
		}
		if at = len(frame); at == 4+n {
			return frame, nil
		}
		larger := make([]byte, min(4+n, 4*at))
		copy(larger, frame)
		frame = larger
	}
}
