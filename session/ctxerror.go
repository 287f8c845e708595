package session

import (
	"context"
	"errors"
	"fmt"
)

// A ctxError is the error of a call whose ctx ended. No other error of this module
// carries the cause of a caller's context. The code that waits for a context creates the
// ctxError when the context ends. errors.Is finds ctx.Err() and the cause in a ctxError.
// ClassOf looks for the ctxError itself and never into the cause.
type ctxError struct {
	err, cause error
	reason     error // the reason for the wait; nil if unknown
}

// Cancelled returns the error of a call whose ctx has ended. The error matches ctx.Err()
// and the cause, and its class is ClassCancelled. Packages that build on this package use
// it.
func Cancelled(ctx context.Context) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), nil}
}

// CancelledWaiting is like Cancelled, and puts the reason for the wait at the start of
// the error's text. errors.Is finds the errors that the reason wraps. The class is
// ClassCancelled nevertheless.
func CancelledWaiting(ctx context.Context, reason error) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), reason}
}

// WaitReason returns the reason for the wait that err carries, or nil if err carries
// none. See CancelledWaiting.
func WaitReason(err error) error {
	var end *ctxError
	if errors.As(err, &end) {
		return end.reason
	}
	return nil
}

func (e *ctxError) Error() string {
	text := e.cause.Error()
	// Without a cause of its own, context.Cause returns ctx.Err(), and the text would be
	// there twice.
	if !errors.Is(e.cause, e.err) {
		text = fmt.Sprintf("%v: %v", e.err, e.cause)
	}
	if e.reason != nil {
		text = fmt.Sprintf("%v: %s", e.reason, text)
	}
	return text
}

func (e *ctxError) Unwrap() []error {
	if e.reason != nil {
		return []error{e.err, e.cause, e.reason}
	}
	return []error{e.err, e.cause}
}

// A finalError is an error with which Connect gives up before its ctx has ended. The error that it
// wraps may come from the program's dialer or SASL mechanism. It may match the end of another
// context, for example of a dial that took too long, and errors.Is must not take that for the end
// of the caller's ctx.
type finalError struct{ withoutEnd }

func (e *finalError) Error() string { return e.err.Error() }

// withoutEnd wraps an error in which the end of a ctx is not the end of the caller's ctx: errors.Is and errors.As
// find everything else.
type withoutEnd struct{ err error }

func (e withoutEnd) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

func (e withoutEnd) As(target any) bool {
	if _, ok := target.(**ctxError); ok {
		return false
	}
	return errors.As(e.err, target)
}
