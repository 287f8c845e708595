package session

import (
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// proves says what the answer to c shows. Only a transaction that had an effect,
// or would have had one, is a commit: a follower refuses some requests without
// its leader, and a leader that was deposed answers everything but transactions.
func proves(c *wire.Call) evidence {
	if c.Err != nil {
		return proofNothing
	}
	if c.Code != 0 {
		return proofContact
	}
	switch c.Op {
	case wire.OpSync:
		return proofLeader
	case wire.OpCreate, wire.OpCreateContainer, wire.OpDelete, wire.OpSetData:
		return proofCommit
	case wire.OpMulti:
		if !c.MultiEmpty() && c.MultiCode() == 0 {
			return proofCommit
		}
	}
	return proofContact
}

// failureOf returns why a call has failed.
func failureOf(c *wire.Call) error {
	if c.Err != nil {
		return c.Err
	}
	return errorOfCode(c.Code)
}

// classOfCall is ClassOf for the outcome of a call.
func classOfCall(c *wire.Call) Class {
	if c.Err != nil {
		return ClassOf(c.Err)
	}
	return classOfCode(c.MultiCode())
}

// quorumOf returns nil if the answer to a records.quorum proves a commit: if there is
// a result, whether or not the check has passed. A server that refuses the request
// before it reaches the leader answers without a result.
func quorumOf(c *wire.Call) error {
	if err := failureOf(c); err != nil {
		return err
	}
	switch classOfCall(c) {
	case ClassLost, ClassTransient, ClassConnectionLost:
		return errorOfCode(c.MultiCode())
	}
	if len(c.Body) < wire.MultiHeaderSize {
		return wire.ErrMalformed
	}
	return nil
}

// A read that has broken its connection is repeated, because the next server may
// answer better. Every break adds to the guilt of the read, and with maxGuilt the
// read ends with the reason. Two answers that are too large or too slow are enough.
// It takes four answers that stop in the middle, because the network may have broken
// down at that moment.
const (
	maxGuilt       = 4
	minAnswerSpeed = 16 << 10 // bytes a second
)

// guilt returns by how much a failed attempt adds to the guilt of its request.
func guilt(err error) int {
	if lost, ok := err.(*wire.LostAnswer); ok {
		return lost.Guilt
	}
	return 0
}

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
