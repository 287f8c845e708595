package commit

import (
	"errors"
	"fmt"
)

// ErrUnknown says that a transaction may or may not have happened.
var ErrUnknown = errors.New("zksync: it may or may not have happened")

// unknown returns an ErrUnknown with the reason why the outcome is not known.
func unknown(why error) error { return &unknownError{why} }

// IsUnknown reports whether err itself is an ErrUnknown of this package. It does not
// unwrap err, since the ctx of a caller may have an ErrUnknown as its cause.
func IsUnknown(err error) bool {
	_, ok := err.(*unknownError)
	return ok
}

type unknownError struct{ why error }

func (e *unknownError) Error() string   { return fmt.Sprintf("%v: %v", ErrUnknown, e.why) }
func (e *unknownError) Unwrap() []error { return []error{ErrUnknown, e.why} }
