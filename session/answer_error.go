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
	minAnswerSpeed = 16 << 10 // bytes a second
)

// errTooLarge is the error of an answer of n bytes.
func errTooLarge(n, limit int) error {
	return fmt.Errorf("%w: %d bytes, where %d are allowed: read less at once, or raise session.WithMaxAnswer", ErrAnswerTooLarge, n, limit)
}

// errTooSlow is the error of an answer of which got bytes of size have arrived within d.
func errTooSlow(got, size int, d, timeout time.Duration) error {
	speed := float64(got) / max(d, time.Millisecond).Seconds()
	return fmt.Errorf("%w: %d of %d bytes in %v, %.0f bytes/s, with a session timeout of %v: read less at once, or raise session.WithTimeout",
		ErrAnswerTooSlow, got, size, roundTime(d), speed, timeout)
}
