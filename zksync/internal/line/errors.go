package line

import "errors"

var (
	// ErrReleased is the cause with which the context of a hold ends when the hold is
	// released.
	ErrReleased = errors.New("zksync: released")

	// ErrTooMany says that a request is for more units than the semaphore has.
	ErrTooMany = errors.New("zksync: too many units")
)
