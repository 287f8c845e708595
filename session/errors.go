package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// The errors of this package. errors.Is finds each of them in every error that a call
// returns. An error with a counterpart in go-zookeeper matches the counterpart as well.
var (
	// ErrLost reports that the ZooKeeper session is gone, and with it every ephemeral
	// znode of the session: the server has expired the session, the lease could not be
	// renewed in time, or no server answered for the session timeout. A write that was in
	// flight may or may not have happened.
	ErrLost error = &sentinel{"session lost", zk.ErrSessionExpired}

	// ErrRemoved reports that another client removed the znode of a hold, of a wait or of
	// an Ephemeral, for example because an operator breaks a lock. The hold is lost, so
	// errors.Is finds ErrLost too. The session lives, unless a server is just ending it: the
	// server then reports the removal of the znode first.
	ErrRemoved error = &sentinel{"the znode was removed by another client", ErrLost}

	// ErrConnectionLost reports that the connection broke before the answer to a request
	// that is not safe to repeat: the request may or may not have happened. The session
	// may live. A Set or Delete with a version is repeated, and reports this error if the
	// repetition found another version or no znode. For the rare case in which a repetition
	// finds a new znode with the same version, see Session.Set.
	ErrConnectionLost = wire.ErrConnectionLost

	// ErrClosed reports that the Manager was closed.
	ErrClosed error = &sentinel{"manager closed", zk.ErrClosing}

	// ErrAuthFailed reports that the servers refused a credential of WithAuth or
	// WithSASL. Another error in answer to a credential ends only that connection.
	ErrAuthFailed error = &sentinel{"the server refused the credentials of WithAuth or WithSASL", zk.ErrAuthFailed}

	// ErrMisconfigured reports that no server of the connection string can be used, for a
	// reason that waiting does not remove: for example a certificate that is not trusted,
	// or a port with another protocol. The text says what to change.
	ErrMisconfigured = errors.New("session: no server can be used, and waiting does not help")

	// ErrNoChroot reports that the chroot of the connection string does not exist. See
	// WithCreateChroot.
	ErrNoChroot error = &sentinel{"the chroot does not exist", zk.ErrNoNode}

	// Every error about an option's value wraps ErrInvalidOption.
	ErrInvalidOption = errors.New("session: invalid option")

	// Every error about a connection string wraps ErrInvalidServers.
	ErrInvalidServers = errors.New("session: invalid connection string")

	// Every error about a znode path that no server would accept wraps ErrInvalidPath.
	// The request was not sent.
	ErrInvalidPath error = &sentinel{"invalid path", zk.ErrInvalidPath}

	// ErrTooLarge reports that a request is above the limit of WithMaxRequest. The
	// request was not sent, because a server closes the connection on a frame above its
	// limit.
	ErrTooLarge = errors.New("session: request too large")

	// ErrAnswerTooLarge reports that the answer to a read is above the limit of
	// WithMaxAnswer. Such an answer breaks the connection, so the read is repeated only
	// once.
	ErrAnswerTooLarge = errors.New("session: answer too large")

	// ErrAnswerTooSlow reports that the answer to a read arrived too slowly and broke the
	// connection: slower than 16 KiB/s for longer than the session timeout, or so slowly
	// that the answer would have cost a hold. The text has the speed. The read is
	// repeated once, or three times if the answer stopped in the middle. A read of an Inbox
	// is repeated until it is answered.
	ErrAnswerTooSlow = errors.New("session: answer too slow")

	// ErrStale reports that nothing may be granted at present, because the session is not
	// proven alive: see Lease.Hold. The session may be alive.
	ErrStale = errors.New("session: not proven alive at present")

	// ErrNotOwned reports that the znode of a Lease does not exist any more.
	ErrNotOwned = errors.New("session: the znode of the lease does not exist any more")

	// ErrConflict reports that a znode of another client has the name of an Ephemeral.
	// The text has the owner.
	ErrConflict error = &sentinel{"somebody else's znode has that name", zk.ErrNodeExists}

	// ErrEphemeralClosed reports that Ephemeral.Close was called.
	ErrEphemeralClosed = errors.New("session: ephemeral closed")
)

type sentinel struct {
	text string
	zk   error
}

func (s *sentinel) Error() string { return "session: " + s.text }
func (s *sentinel) Unwrap() error { return s.zk }

// Error is the error of a failed operation. It unwraps to the sentinels of this package
// and to go-zookeeper's errors.
type Error struct {
	Op   string // the operation, for example "create" or "multi"
	Path string // the znode, relative to the chroot; empty if the operation has no path
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func opError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Err: err}
}

// errOtherConnection is the error of MultiOnce if another connection is in use.
var errOtherConnection = errors.New("session: another connection is in use")

// errLeaseEnded reports a programming error of Hold's caller.
var errLeaseEnded = errors.New("session: hold a lease that has ended")

// errNotRemoved is the error of an Ephemeral.Close that waits no longer.
var errNotRemoved = errors.New("session: the znode was not removed")

// errClosing is the reason why an Ephemeral waits for another one of the same path.
var errClosing = errors.New("session: an Ephemeral of this Manager that was closed has not removed its znode yet")
