package zksync

import (
	"context"
	"math"

	"github.com/go-zksync/toolkit/session"
)

// A gate says how much of a batch may go into the next request, and what has to
// hold true for that.
type gate interface {
	// admit waits until there is room for some of n entries. The operations go
	// ahead of theirs.
	admit(ctx context.Context, s *session.Session, n int) (ops []any, room int, err error)
	// passed is told of n entries that happened.
	passed(n int)
	// refused is told that the server refused the operations; nothing has
	// happened.
	refused(err error) error
}

// open lets everything pass.
type open struct{}

func (open) admit(context.Context, *session.Session, int) ([]any, int, error) {
	return nil, math.MaxInt, nil
}
func (open) passed(int)          {}
func (open) refused(error) error { return nil }
