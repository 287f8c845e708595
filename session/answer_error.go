package session

import (
	"fmt"
	"time"
)

// A read that has broken its connection is repeated, because the next server may
// answer better. Every break adds to the guilt of the read, and with maxGuilt the
// read ends with the reason. Two answers that are too large or too slow are enough.
// It takes four answers that stop in the middle, because the network may have broken
// down at that moment.
const (
	maxGuilt       = 4
	guiltOfAnswer  = 2
	guiltOfStall   = 1
	minAnswerSpeed = 16 << 10 // bytes a second
)

// An answerError says why an answer was not received to its end. It unwraps to
// ErrAnswerTooLarge or ErrAnswerTooSlow.
type answerError struct {
	sentinel error
	text     string
	guilt    int
}

func (e *answerError) Error() string { return fmt.Sprintf("%v: %s", e.sentinel, e.text) }
func (e *answerError) Unwrap() error { return e.sentinel }

// tooLarge is the error of an answer of n bytes.
func tooLarge(n, limit int) *answerError {
	return &answerError{ErrAnswerTooLarge, fmt.Sprintf("%d bytes, where %d are allowed: read less at once, or raise session.WithMaxAnswer", n, limit), guiltOfAnswer}
}

// tooSlow is the error of an answer of which got bytes of size have arrived within d.
func tooSlow(got, size int, d, timeout time.Duration) *answerError {
	speed := float64(got) / max(d, time.Millisecond).Seconds()
	return &answerError{ErrAnswerTooSlow, fmt.Sprintf("%d of %d bytes in %v, %.0f bytes/s, with a session timeout of %v: read less at once, or raise session.WithTimeout",
		got, size, roundTime(d), speed, timeout), guiltOfAnswer}
}

// A lostAnswer is ErrConnectionLost for the request whose answer has cost the
// connection.
type lostAnswer struct{ reason *answerError }

func (e *lostAnswer) Error() string   { return fmt.Sprintf("%v (%v)", ErrConnectionLost, e.reason) }
func (e *lostAnswer) Unwrap() []error { return []error{ErrConnectionLost, e.reason} }

// guilt returns by how much a failed attempt adds to the guilt of its request.
func guilt(err error) int {
	if lost, ok := err.(*lostAnswer); ok {
		return lost.reason.guilt
	}
	return 0
}

// reads reports whether a request changes nothing on the servers.
func (r *request) reads() bool {
	switch r.op {
	case opGetData, opExists, opGetChildren2, opMultiRead, opSync:
		return true
	}
	return false
}
