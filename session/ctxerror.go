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
type ctxError struct{ err, cause error }

// Cancelled returns the error of a call whose ctx has ended: it matches ctx.Err()
// and the cause, and its class is ClassCancelled. It is for packages that are built
// on this one.
func Cancelled(ctx context.Context) error {
	return &ctxError{ctx.Err(), context.Cause(ctx)}
}

func (e *ctxError) Error() string {
	if errors.Is(e.cause, e.err) {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v: %v", e.err, e.cause)
}

func (e *ctxError) Unwrap() []error { return []error{e.err, e.cause} }
