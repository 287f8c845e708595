package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

// ErrStopped ends a stream whose loop over All was left.
var ErrStopped = errors.New("watch: the loop over All was left")

// An EndReason says what has ended a stream.
type EndReason uint8

const (
	// ContextEnded: the ctx of the stream has ended.
	ContextEnded EndReason = iota + 1
	// ManagerClosed: the Manager was closed.
	ManagerClosed
	// Refused: the path is invalid, or the server refuses for good to show it.
	Refused
	// Stopped: the consumer has left the loop over All.
	Stopped
)

var endReasonNames = [...]string{
	ContextEnded: "ContextEnded", ManagerClosed: "ManagerClosed", Refused: "Refused", Stopped: "Stopped",
}

// String returns the name of the constant.
func (r EndReason) String() string { return nameOf(endReasonNames[:], uint8(r), "EndReason") }

// nameOf returns the name of a value whose type counts from 1.
func nameOf(names []string, value uint8, of string) string {
	if value > 0 && int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", of, value)
}

// An EndError is the error with which a stream or a Cache ends. Use errors.As and
// Reason to tell the reasons apart: errors.Is also finds what the cause of a
// context wraps, and a cause may wrap anything, as session.ErrClosed or
// zk.ErrNoAuth.
type EndError struct {
	Stream string // the kind: "node", "children", "tree", "value", or as given to NewStream
	Path   string
	Reason EndReason
	// Err is an error that matches ctx.Err() and the cause of ctx, or
	// session.ErrClosed, or the refusal, as zk.ErrNoAuth or session.ErrInvalidPath,
	// or ErrStopped.
	Err error
}

func (e *EndError) Error() string { return fmt.Sprintf("watch %s %s: %v", e.Stream, e.Path, e.Err) }
func (e *EndError) Unwrap() error { return e.Err }

// ended is the EndError of a stream that ctx bounds and that err has stopped. The
// order matters: the cause of a context may wrap any other reason.
func ended(ctx context.Context, kind, path string, err error) *EndError {
	end := &EndError{Stream: kind, Path: path, Reason: Refused, Err: err}
	var inner *EndError
	switch {
	case ctx.Err() != nil:
		end.Reason, end.Err = ContextEnded, session.Cancelled(ctx)
	case errors.As(err, &inner):
		// The stream from which this one is made has ended, and its error has the
		// reason.
		end.Reason, end.Err = inner.Reason, inner.Err
	case errors.Is(err, session.ErrClosed):
		end.Reason = ManagerClosed
	}
	return end
}
