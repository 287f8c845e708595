package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// A ConnectResponse is the answer of a server to the handshake.
type ConnectResponse struct {
	Timeout  time.Duration // of the session
	Session  int64         // 0: there is no such session
	Password []byte
	ReadOnly bool      // the server has no quorum
	Asked    int64     // the session that was asked for; 0 is a new one
	AskedAt  time.Time // when the request was written
}

// expiredAnswer is the ConnectResponse by which a server reports that a session is gone.
var expiredAnswer = append([]byte{0, 0, 0, 36}, append(make([]byte, 16), append([]byte{0, 0, 0, 16}, make([]byte, 16)...)...)...)

// adjustConnect records the session for which go-zookeeper asks, and writes the newest
// zxid that the session has seen into the request.
func (r *ConnectResponse) adjustConnect(frame []byte, zxid int64) []byte {
	d := Decoder{B: frame}
	d.take(20) // up to the session
	r.Asked, r.AskedAt = d.Long(), time.Now()
	if d.Bad {
		return frame
	}
	// go-zookeeper has seen hardly any of our answers, and a server that is further behind
	// must not accept the session.
	return append(Encoder(append([]byte(nil), frame[:8]...)).Long(zxid), frame[16:]...)
}

// read decodes the answer.
func (r *ConnectResponse) read(frame []byte) error {
	d := Decoder{B: frame[4:]}
	d.Int()
	r.Timeout, r.Session, r.Password = time.Duration(d.Int())*time.Millisecond, d.Long(), d.Buffer()
	if d.Bad {
		return fmt.Errorf("%w: to the handshake", ErrMalformed)
	}
	r.ReadOnly = len(d.B) > 0 && d.Bool()
	return nil
}

// shakeHands lets the handler decide about a ConnectResponse, and returns the frame that
// go-zookeeper reads.
func (s *stream) shakeHands(frame []byte) ([]byte, error) {
	r := &s.hello
	if err := r.read(frame); err != nil {
		return nil, err
	}
	timeout, err := s.w.cfg.Handler.Connected(r)
	switch {
	case err != nil:
		return nil, err
	// go-zookeeper then ends its session, as after an answer of a server.
	case timeout == 0:
		return expiredAnswer, nil
	case timeout != r.Timeout:
		binary.BigEndian.PutUint32(frame[8:], uint32(timeout.Milliseconds())) // go-zookeeper's timers, too
	}
	s.pace = timeout / pongFraction
	return frame, nil
}

// pongFraction is the part of the session timeout after which go-zookeeper gets another
// answer to a ping.
const pongFraction = 12

// pong returns the answer to a ping for go-zookeeper, if the last such answer is old
// enough.
func (s *stream) pong() []byte {
	// go-zookeeper gives up a connection on which it reads nothing. The answers to our own
	// requests show that the connection is alive.
	now := time.Now()
	if now.Sub(s.ponged) < s.pace {
		return nil
	}
	s.ponged = now
	return Encoder(nil).Int(16).Int(xidPing).Long(0).Int(0)
}

// A Lockstep makes one request at a time on a connection that has no Conn.
type Lockstep struct{ Conn io.ReadWriter }

// maxExchanged is the limit of an answer. A token of a SASL mechanism is shorter.
const maxExchanged = 64 << 10

// exchange sends a frame and returns the answer without its length. The first four bytes
// of the frame are for its length.
func (l Lockstep) exchange(frame []byte) ([]byte, error) {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := l.Conn.Write(frame); err != nil {
		return nil, err
	}
	answer, err := readAnswer(l.Conn, maxExchanged)
	if err != nil {
		return nil, err
	}
	return answer[4:], nil
}

// Connect takes a session over. granted is 0 if the server does not have the session.
func (l Lockstep) Connect(timeout time.Duration, session int64, password []byte) (granted int64, err error) {
	// Any server may take the session, even a server that is far behind: the zxid is 0.
	// A request without the byte for read-only sessions is refused by a server that is
	// read-only, and such a server could not close the session.
	answer, err := l.exchange(Encoder(make([]byte, 4)).Int(0).Long(0).Int(int32(timeout / time.Millisecond)).Long(session).Buffer(password))
	if err != nil {
		return 0, &UnansweredError{err}
	}
	d := Decoder{B: answer}
	d.take(8)
	// Zero would mean that the session has expired, so an answer that ends early must not
	// count as zero.
	if granted = d.Long(); d.Bad {
		return 0, fmt.Errorf("%w: to the handshake", ErrMalformed)
	}
	return granted, nil
}

// Do sends a request and returns the answer.
func (l Lockstep) Do(op int32, record []byte) (code int32, body []byte, err error) {
	answer, err := l.exchange(append(Encoder(make([]byte, 4)).Int(1).Int(op), record...))
	if err != nil {
		return 0, nil, err
	}
	d := Decoder{B: answer}
	d.take(12)
	if code = d.Int(); d.Bad {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", ErrMalformed, len(answer))
	}
	return code, d.B, nil
}

// CloseSession closes the session on the server.
func (l Lockstep) CloseSession() error {
	// Without an answer, or after a refusal, the session may still exist.
	code, _, err := l.Do(opCloseSession, nil)
	if err == nil && code != 0 {
		err = fmt.Errorf("closeSession was refused with code %d", code)
	}
	return err
}
