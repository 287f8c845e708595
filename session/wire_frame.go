package session

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"
)

// defaultMaxAnswer guards against a length that no server would send.
const defaultMaxAnswer = 1 << 28

const (
	maxHandshake = 4 << 10 // a ConnectResponse has 41 bytes
	maxUnasked   = 2 << 20 // the path of an event has a mebibyte at most, by the default of jute.maxbuffer
)

// arrivals notes when bytes arrive: an answer that is large or slow is a sign of
// life long before its end. It is no evidence for the lease, see proof.
type arrivals struct{ w *wire }

func (a arrivals) Read(p []byte) (int, error) {
	w := a.w
	if w.patience > 0 {
		// go-zookeeper sets a limit for the next frame. It is a limit for silence
		// here, so that it begins anew with every byte.
		w.Conn.SetReadDeadline(time.Now().Add(w.patience))
	}
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.mu.Lock()
		w.arrived = time.Now()
		w.received += int64(n)
		w.mu.Unlock()
	}
	return n, err
}

// SetReadDeadline takes the limit by which go-zookeeper drops a silent connection.
// See arrivals.
func (w *wire) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		w.patience = 0
		return w.Conn.SetReadDeadline(t)
	}
	w.patience = min(time.Until(t), 2*maxIdlePace)
	return nil
}

// A partialAnswer is an answer of which some bytes have arrived.
type partialAnswer struct {
	xid   int32
	size  int       // in bytes, with the length in front
	began time.Time // when its first bytes were looked at; zero if there is no such answer
	from  int64     // wire.received without any byte of the answer
}

// arriving returns the answer of which some bytes have arrived, and the number of
// these bytes. ok is false if there is none.
func (w *wire) arriving() (p partialAnswer, got int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.partial, int(w.received - w.partial.from), !w.partial.began.IsZero()
}

// lastArrival returns when the newest bytes arrived.
func (w *wire) lastArrival() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrived
}

// accuse notes that the connection is about to be ended because of the answer to a
// request. The request learns it from end.
func (w *wire) accuse(xid int32, why *answerError) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blame == nil {
		w.blamed, w.blame = xid, why
	}
}

// accusePartial blames an answer that has arrived in part, and returns the reason for the
// end of the connection. It returns nil, and does nothing, if the answer is complete
// meanwhile: the next one must not be blamed for it.
func (w *wire) accusePartial(p partialAnswer, now time.Time, guilt int) error {
	current, got, _ := w.arriving()
	if current != p {
		return nil
	}
	err := tooSlow(got, p.size, now.Sub(p.began), w.s.Timeout())
	if err.guilt = guilt; guilt > 0 {
		w.accuse(p.xid, err)
	}
	return err
}

// accuseCut blames the answer that has arrived in part for the end of the stream. It
// does nothing if no answer has arrived in part. The network may have broken down in the middle of the answer.
func (w *wire) accuseCut() {
	if p, _, ok := w.arriving(); ok {
		w.accusePartial(p, time.Now(), guiltOfStall)
	}
}

// readFrame returns a frame with its length in front. It recognises servers that are
// not ZooKeeper's, and answers that are too large.
func (w *wire) readFrame() ([]byte, error) {
	head, err := w.in.Peek(4)
	if err != nil {
		return nil, err
	}
	if !w.shaken {
		if err := foreign([4]byte(head)); err != nil {
			return nil, err
		}
	}
	n, limit := int(int32(binary.BigEndian.Uint32(head))), w.s.m.cfg.maxAnswer
	if !w.shaken {
		limit = min(limit, maxHandshake)
	}
	if !w.shaken || n < 4 || n <= limit && w.in.Buffered() >= 4+n {
		return readAnswer(w.in, limit)
	}
	if head, err = w.in.Peek(8); err != nil {
		return nil, err
	}
	xid := int32(binary.BigEndian.Uint32(head[4:]))
	asked := w.isPending(xid)
	if !asked && n > maxUnasked {
		return nil, fmt.Errorf("%w: a frame of %d bytes that nobody asked for", errMalformed, n)
	}
	// WithMaxAnswer is not for events: the server would send the event again on each new
	// connection.
	if n > limit && xid != xidWatchEvent {
		if !asked {
			return nil, fmt.Errorf("%w: a frame of %d bytes", errMalformed, n)
		}
		err := tooLarge(n, limit)
		w.accuse(xid, err)
		return nil, err
	}
	w.mu.Lock()
	w.partial = partialAnswer{xid, 4 + n, time.Now(), w.received - int64(w.in.Buffered())}
	w.mu.Unlock()
	frame, err := readAnswer(w.in, n)
	if err != nil {
		return nil, err // partial stays, for the reason
	}
	w.mu.Lock()
	w.partial = partialAnswer{}
	w.mu.Unlock()
	return frame, nil
}

// isPending reports whether the answer to a request of ours is awaited.
func (w *wire) isPending(xid int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pending, func(f inFlight) bool { return f.xid == xid })
}

// readAnswer returns a frame of limit bytes at most, with its length in front.
func readAnswer(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("%w: a frame of %d bytes", errMalformed, n)
	}
	// A length is only believed as far as bytes follow it. The buffer grows fast, so
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
