package zksync

import (
	"errors"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

var (
	// ErrLost says that a hold ended before it was released: its session was lost, or
	// another client removed its znode. It is session.ErrLost.
	ErrLost = session.ErrLost

	// ErrRemoved says that another client removed the znode of a hold or of a wait,
	// as an operator does to break a lock. Every ErrRemoved is an ErrLost too; the
	// session lives. ErrRemoved is session.ErrRemoved.
	ErrRemoved = session.ErrRemoved

	// ErrClosed says that the Manager was closed. It is session.ErrClosed.
	ErrClosed = session.ErrClosed

	// Every error about an option's value, or about an option that a primitive does
	// not have, wraps ErrInvalidOption.
	ErrInvalidOption = session.ErrInvalidOption

	// ErrNotHeld says that this value does not hold the lock or the units that it
	// should release.
	ErrNotHeld = errors.New("zksync: not held")

	// ErrReleased is the cause with which the context of a hold ends when the
	// hold was released in order.
	ErrReleased = errors.New("zksync: released")

	// ErrBusy says that a value is already in a call of which it allows only one at a
	// time.
	ErrBusy = errors.New("zksync: busy")

	// ErrIDInUse says that the id given by WithID to a participant of a DoubleBarrier
	// belongs to another participant at present. This may be an earlier participant
	// of the same process, until the earlier one's session has expired.
	ErrIDInUse = errors.New("zksync: the id is in use")

	// ErrNoLeader says that there is no candidate, and so no leader.
	ErrNoLeader = errors.New("zksync: no leader")

	// ErrIDTaken says that a Group already has a member with that id.
	ErrIDTaken = errors.New("zksync: the id is taken")

	// ErrStillRunning says that work did not return within WithStopTimeout after its
	// context had ended, and goes on without leadership.
	ErrStillRunning = errors.New("zksync: the work is still running")

	// ErrInvalidCount says that a number of units is below one.
	ErrInvalidCount = errors.New("zksync: invalid count")

	// ErrTooMany says that a request is for more units than the Semaphore has.
	ErrTooMany = errors.New("zksync: more than the semaphore has")

	// ErrSettled says that a Message was acknowledged or given back before.
	ErrSettled = errors.New("zksync: the message is settled")

	// ErrQueueClosed says that Close was called on a queue's value.
	ErrQueueClosed = errors.New("zksync: the queue was closed")

	// ErrInvalidPriority says that a PriorityQueue has no such priority.
	ErrInvalidPriority = errors.New("zksync: invalid priority")

	// ErrInvalidTime says that a message cannot be due at such a time.
	ErrInvalidTime = errors.New("zksync: invalid time")

	// ErrOutcomeUnknown says that a change may or may not have happened: ctx ended
	// while the request was under way, or another client removed the marker of the
	// request.
	ErrOutcomeUnknown = errors.New("zksync: it may or may not have happened")

	// ErrMaxWait says that an acquisition was given up after WithMaxWait. It
	// comes with context.DeadlineExceeded.
	ErrMaxWait = errors.New("zksync: waited for as long as WithMaxWait allows")
)

// Error is the error of a failed operation. It has the operation, the path and the
// reason. It unwraps to the sentinels of this package, of session and of
// go-zookeeper.
type Error = session.Error

func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Err: err}
}

// errSpent says that a directory cannot give another number. It stays within
// the package.
var errSpent = errors.New("zksync: the directory's counter is spent")

// lossOf returns the end of a session as the loss of the holds that depended on the
// session.
func lossOf(cause error) error {
	if _, ok := cause.(*lossError); ok || isLoss(cause) {
		return cause
	}
	return &lossError{cause}
}

// A lossError is a loss because of something that is no ErrLost by itself.
type lossError struct{ cause error }

func (e *lossError) Error() string   { return fmt.Sprintf("%v: %v", ErrLost, e.cause) }
func (e *lossError) Unwrap() []error { return []error{ErrLost, e.cause} }

// isLoss reports whether err is the loss of a hold or of a place in line.
func isLoss(err error) bool {
	class := session.ClassOf(err)
	return class == session.ClassLost || class == session.ClassRemoved
}
