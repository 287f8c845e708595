package wire

import (
	"fmt"
	"time"
)

// A ConnectRequest asks a server for a session.
type ConnectRequest struct {
	Zxid     int64 // the newest that the session has seen: a server that is further behind refuses
	Timeout  time.Duration
	Session  int64 // 0: a new one
	Password []byte
}

// frame encodes the request.
func (r ConnectRequest) frame() []byte {
	// A request without the byte for read-only sessions is refused by a server that is
	// read-only.
	record := Encoder(nil).Int(0).Long(r.Zxid).Int(int32(r.Timeout / time.Millisecond)).Long(r.Session).Buffer(r.Password)
	return Encoder(nil).Buffer(record)
}

// A ConnectResponse is the answer of a server to the handshake.
type ConnectResponse struct {
	Timeout  time.Duration // of the session
	Session  int64         // 0: there is no such session
	Password []byte
	ReadOnly bool      // the server has no quorum
	Asked    int64     // the session that was asked for; 0 is a new one
	AskedAt  time.Time // when the request was written
}

// shakeHands lets the handler decide about a ConnectResponse.
func (s *stream) shakeHands(frame []byte) error {
	d := Decoder{B: frame[4:]}
	d.Int()
	r := &ConnectResponse{Timeout: time.Duration(d.Int()) * time.Millisecond, Session: d.Long(), Password: d.Buffer(), Asked: s.w.cfg.Hello.Session, AskedAt: s.w.askedAt}
	if d.Bad {
		return fmt.Errorf("%w: to the handshake", ErrMalformed)
	}
	r.ReadOnly = len(d.B) > 0 && d.Bool()
	return s.w.cfg.Handler.Connected(r)
}
