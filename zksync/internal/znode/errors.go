package znode

import "errors"

var (
	// ErrNotHeld says that a value does not hold what it should release.
	ErrNotHeld = errors.New("zksync: not held")

	// ErrBusy says that a value is in a call of which it allows only one at a time.
	ErrBusy = errors.New("zksync: busy")
)
