package wire

import (
	"encoding/binary"
	"fmt"
	"io"
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
	frame := Encoder(make([]byte, 4)).Int(0).Long(r.Zxid).Int(int32(r.Timeout / time.Millisecond)).Long(r.Session).Buffer(r.Password)
	return putLength(frame)
}

// putLength writes the length of a frame into its first four bytes.
func putLength(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
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

// A Lockstep makes one request at a time on a connection that has no Conn.
type Lockstep struct{ Conn io.ReadWriter }

// maxExchanged is the limit of an answer. A token of a SASL mechanism is shorter.
const maxExchanged = 64 << 10

// exchange sends a frame and returns the answer without its length. The first four bytes
// of the frame are for its length.
func (l Lockstep) exchange(frame []byte) ([]byte, error) {
	if _, err := l.Conn.Write(putLength(frame)); err != nil {
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
	// Any server may take the session, even a server that is far behind: the zxid is 0. A
	// server that is read-only could not close the session.
	answer, err := l.exchange(ConnectRequest{Timeout: timeout, Session: session, Password: password}.frame())
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
	code, _, err := l.Do(OpCloseSession, nil)
	if err == nil && code != 0 {
		err = fmt.Errorf("closeSession was refused with code %d", code)
	}
	return err
}
