package znode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
)

var (
	// ErrNotHeld says that a value does not hold what it should release.
	ErrNotHeld = errors.New("zksync: not held")

	// ErrBusy says that a value is in a call of which it allows only one at a time.
	ErrBusy = errors.New("zksync: busy")
)

// LossOf returns the end of a session as the loss of the holds that depended on the
// session.
func LossOf(cause error) error {
	if _, ok := cause.(*lossError); ok || IsLoss(cause) {
		return cause
	}
	return &lossError{cause}
}

// A lossError is a loss whose cause does not wrap ErrLost.
type lossError struct{ cause error }

func (e *lossError) Error() string   { return fmt.Sprintf("%v: %v", session.ErrLost, e.cause) }
func (e *lossError) Unwrap() []error { return []error{session.ErrLost, e.cause} }

// IsLoss reports whether err is the loss of a hold or of a position in line.
func IsLoss(err error) bool {
	class := session.ClassOf(err)
	return class == session.ClassLost || class == session.ClassRemoved
}

// SessionLost returns the reason why the holds of a session are lost with the session.
// It returns nil while the session is proven alive.
func SessionLost(s *session.Session) error {
	if err := s.Err(); err != nil {
		return LossOf(err)
	}
	// The timer that ends the session at its Deadline may be late.
	if !time.Now().Before(s.Deadline()) {
		return fmt.Errorf("%w: the lease ran out", session.ErrLost)
	}
	return nil
}

// NotifyLoss calls onLoss with the loss when the session ends, until stop is called. If
// the session has ended already, NotifyLoss returns the loss, and stop does nothing.
func NotifyLoss(s *session.Session, onLoss func(error)) (stop func(), err error) {
	stop, err = s.NotifyEnd(func(why error) { onLoss(LossOf(why)) })
	if err != nil {
		return func() {}, LossOf(err)
	}
	return stop, nil
}

// Grant waits until the session is proven alive, and holds the lease.
func Grant(ctx context.Context, l *session.Lease) error {
	err := l.Grant(ctx)
	if session.ClassOf(err) == session.ClassRemoved {
		return session.ErrRemoved
	}
	return err
}
