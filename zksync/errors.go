package zksync

import (
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/rendezvous"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

var (
	// ErrLost says that a hold, or the claim on a Message, ended before it was released:
	// its session was lost, or another client removed its znode. It is session.ErrLost.
	ErrLost = session.ErrLost

	// ErrRemoved says that another client removed the znode of a hold or of a waiting
	// contender, as an operator does to break a lock. Every ErrRemoved is an ErrLost, too.
	// The session lives, unless a server is just ending it. ErrRemoved is session.ErrRemoved.
	ErrRemoved = session.ErrRemoved

	// ErrClosed says that the Manager was closed. It is session.ErrClosed.
	ErrClosed = session.ErrClosed

	// ErrInvalidOption says that an option has an invalid value, that the primitive does
	// not have it, or that the Manager of the primitive is nil.
	ErrInvalidOption = session.ErrInvalidOption

	// ErrNotHeld says that this value does not hold what it should release.
	ErrNotHeld = znode.ErrNotHeld

	// ErrReleased is the cause with which the context of a released hold ends.
	ErrReleased = line.ErrReleased

	// ErrBusy says that a value is in a call of which it allows only one at a time.
	ErrBusy = znode.ErrBusy

	// ErrIDInUse says that the id given by WithID to a participant of a DoubleBarrier
	// belongs to another participant at present. This may be an earlier participant
	// of the same process, until the earlier one's session has expired.
	ErrIDInUse = rendezvous.ErrIDInUse

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
	ErrTooMany = line.ErrTooMany

	// ErrSettled says that Ack, Nack, Retry or MoveTo of a Message was called before.
	ErrSettled = engine.ErrSettled

	// ErrQueueClosed says that Close was called on a queue's value.
	ErrQueueClosed = engine.ErrClosed

	// ErrInvalidPriority says that a PriorityQueue has no such priority.
	ErrInvalidPriority = errors.New("zksync: invalid priority")

	// ErrInvalidTime says that a message cannot be due at such a time.
	ErrInvalidTime = errors.New("zksync: invalid time")

	// ErrOutcomeUnknown says that a change may or may not have happened: ctx ended
	// while the request was under way, or another client removed the marker of the
	// request.
	ErrOutcomeUnknown = commit.ErrUnknown

	// ErrMaxWait says that an acquisition was given up after WithMaxWait. It comes with
	// context.DeadlineExceeded.
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
