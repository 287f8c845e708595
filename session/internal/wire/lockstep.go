package wire

import (
	"encoding/binary"
	"io"
	"time"
)

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
	answer, err := l.exchange(Encoder(make([]byte, 4)).Int(0).Long(0).Int(int32(timeout / time.Millisecond)).Long(session).Buffer(password))
	if err != nil {
		return 0, &UnansweredError{err}
	}
	d := Decoder{B: answer}
	d.take(8)
	return d.Long(), nil
}

// Do sends a request and returns the answer.
func (l Lockstep) Do(op int32, record []byte) (code int32, body []byte, err error) {
	answer, err := l.exchange(append(Encoder(make([]byte, 4)).Int(1).Int(op), record...))
	if err != nil {
		return 0, nil, err
	}
	d := Decoder{B: answer}
	d.take(12)
	return d.Int(), d.B, nil
}

// CloseSession closes the session on the server.
func (l Lockstep) CloseSession() error {
	// Without an answer the session may still exist.
	_, _, err := l.Do(opCloseSession, nil)
	return err
}
