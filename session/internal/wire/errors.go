package wire

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// ErrConnectionLost is session.ErrConnectionLost.
var ErrConnectionLost error = connectionLost{}

type connectionLost struct{}

func (connectionLost) Error() string {
	return "session: connection lost before the answer, the request may or may not have happened"
}
func (connectionLost) Unwrap() error { return zk.ErrConnectionClosed }

// ErrUnsent is the outcome of a call that never reached the connection, so the request
// was certainly not carried out.
var ErrUnsent = errors.New("session: not sent")

// ErrMalformed is the error of an answer that cannot be decoded.
var ErrMalformed = errors.New("malformed answer")

// errUnsolicited ends a connection on which an answer to no request arrived. No correct
// server sends such an answer, and a flood of them would keep a processor of this process
// busy.
var errUnsolicited = fmt.Errorf("%w: to a request that was never made", ErrMalformed)

// errSkipped ends a connection on which an answer is missing.
var errSkipped = errors.New("the server has left out an answer")

// An UnansweredError reports that a connection ended before the server answered the
// handshake.
type UnansweredError struct{ Err error }

func (e *UnansweredError) Error() string { return e.Err.Error() }
func (e *UnansweredError) Unwrap() error { return e.Err }

// A ForeignError reports that the answer to the handshake has another protocol than
// ZooKeeper's.
type ForeignError struct{ Protocol string } // "HTTP", "TLS" or the text that has arrived

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the answer to the handshake is not ZooKeeper's but %s", e.Protocol)
}

// foreign recognises other protocols by the first four bytes of an answer. In ZooKeeper's
// protocol these bytes are the length of a frame.
func foreign(head [4]byte) error {
	switch {
	case string(head[:]) == "HTTP":
		return &ForeignError{"HTTP"}
	case head[0] == 0x15 && head[1] == 3: // a TLS alert
		return &ForeignError{"TLS"}
	}
	// As a length, four printable characters are more than 500 MB, and a ConnectResponse
	// has 41 bytes.
	for _, b := range head {
		if b < ' ' || b > '~' {
			return nil
		}
	}
	return &ForeignError{fmt.Sprintf("text that begins with %q", head[:])}
}

// GuiltOfAnswer is the guilt of a request whose answer is too large or too slow.
// GuiltOfStall is the guilt of a request whose answer has stopped in the middle: the
// network may have failed at that moment.
const (
	GuiltOfAnswer = 2
	GuiltOfStall  = 1
)

// A LostAnswer is the ErrConnectionLost of the request whose answer ended the connection.
type LostAnswer struct {
	Reason error
	Guilt  int
}

func (e *LostAnswer) Error() string   { return fmt.Sprintf("%v (%v)", ErrConnectionLost, e.Reason) }
func (e *LostAnswer) Unwrap() []error { return []error{ErrConnectionLost, e.Reason} }
