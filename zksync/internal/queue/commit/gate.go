package commit

import (
	"context"
	"math"

	"github.com/go-zksync/toolkit/session"
)

// A Gate decides how many entries of a batch may go into the next request, and under
// which condition.
type Gate interface {
	// Admit waits until there is room for some of n entries. The operations go ahead
	// of the entries' operations. The room for the admitted entries stays reserved
	// until Passed or Refused is called.
	Admit(ctx context.Context, s *session.Session, n int) (ops []any, room int, err error)
	// Passed is called when n entries have happened.
	Passed(n int)
	// Refused is called when the server has refused the operations of Admit; nothing
	// has happened. If Refused returns nil, Admit is called again.
	Refused(err error) error
	// Waiting returns the reason why Admit waits, nil if Admit does not wait. Any
	// goroutine may call it.
	Waiting() error
}

// An openGate admits every entry.
type openGate struct{}

func (openGate) Admit(context.Context, *session.Session, int) ([]any, int, error) {
	return nil, math.MaxInt, nil
}
func (openGate) Passed(int)          {}
func (openGate) Refused(error) error { return nil }
func (openGate) Waiting() error      { return nil }
