package wire

import (
	"encoding/binary"
	"fmt"
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
// zxid that the session has seen into the request. go-zookeeper has seen hardly any of
// our answers, and a server that is further behind must not accept the session.
func (r *ConnectResponse) adjustConnect(frame []byte, zxid int64) []byte {
	d := Decoder{B: frame}
	d.take(8)
	d.Long()
	timeout := d.Int()
	r.Asked, r.AskedAt = d.Long(), time.Now()
	if d.Bad {
		return frame
	}
	return append(Encoder(append([]byte(nil), frame[:8]...)).Long(zxid).Int(timeout), frame[20:]...)
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
// enough. go-zookeeper gives up a connection on which it reads nothing. The answers to
// our own requests show that the connection is alive.
func (s *stream) pong() []byte {
	now := time.Now()
	if now.Sub(s.ponged) < s.pace {
		return nil
	}
	s.ponged = now
	return Encoder(nil).Int(16).Int(xidPing).Long(0).Int(0)
}
