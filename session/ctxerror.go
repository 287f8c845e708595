package session

import (
	"context"
	"errors"
	"fmt"
)

// A ctxError is the error of a call whose ctx ended. It is the only error of this
// module that carries the cause of a caller's context, and it is made where the
// wait for that context ended. errors.Is finds ctx.Err() and the cause in it;
// ClassOf looks for the ctxError itself and never into the cause.
type ctxError struct {
	err, cause error
	reason     error // what the call waited for; nil if that is not known
}

// Cancelled returns the error of a call whose ctx has ended: it matches ctx.Err()
// and the cause, and its class is ClassCancelled. It is for packages that are built
// on this one.
func Cancelled(ctx context.Context) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), nil}
}

// CancelledWaiting is Cancelled with the reason for the wait, which the text of the
// error says first. errors.Is finds what the reason wraps; the class is
// ClassCancelled all the same.
func CancelledWaiting(ctx context.Context, reason error) error {
	return &ctxError{ctx.Err(), context.Cause(ctx), reason}
}

// WaitReason returns the reason for the wait that err carries, nil if there is none:
// see CancelledWaiting.
func WaitReason(err error) error {
	var end *ctxError
	if errors.As(err, &end) {
		return end.reason
	}
	return nil
}

func (e *ctxError) Error() string {
	text := e.cause.Error()
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
