package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// The errors of this package. Each can be asked for with errors.Is through
// every error that a call returns; those that have a counterpart in
// go-zookeeper satisfy errors.Is for that one too.
var (
	// ErrLost says that the ZooKeeper session is gone, and with it every
	// ephemeral znode it owned: the server has expired it, its lease could not
	// be renewed in time, or nothing was heard from any server for the session
	// timeout. A write that was under way may or may not have happened.
	ErrLost error = &sentinel{"session lost", zk.ErrSessionExpired}

	// ErrRemoved says that another client removed the znode by which something was
	// held or waited for: an operator who breaks a lock, for example. What was held
	// is lost, so errors.Is finds ErrLost too; the session lives.
	ErrRemoved error = &sentinel{"the znode was removed by another client", ErrLost}

	// ErrConnectionLost says that the connection broke before the answer to a
	// request that cannot safely be repeated: it may or may not have happened.
	// The session may well live on.
	ErrConnectionLost = wire.ErrConnectionLost

	// ErrClosed says that the Manager was closed.
	ErrClosed error = &sentinel{"manager closed", zk.ErrClosing}

	// ErrAuthFailed says that the servers refused a credential given by WithAuth or
	// WithSASL.
	ErrAuthFailed error = &sentinel{"the server refused the credentials of WithAuth or WithSASL", zk.ErrAuthFailed}

	// ErrMisconfigured says that no server of the connection string can be used, for
	// reasons that waiting does not remove: a certificate that is not trusted, a port
	// that speaks another protocol. The text says what to change.
	ErrMisconfigured = errors.New("session: no server can be used, and waiting does not help")

	// ErrNoChroot says that the chroot of the connection string does not exist. See
	// WithCreateChroot.
	ErrNoChroot error = &sentinel{"the chroot does not exist", zk.ErrNoNode}

	// ErrInvalidOption is wrapped by every error about an option's value.
	ErrInvalidOption = errors.New("session: invalid option")

	// ErrInvalidServers is wrapped by every error about a connection string.
	ErrInvalidServers = errors.New("session: invalid connection string")

	// ErrInvalidPath is wrapped by every error about a znode path that no
	// server would accept; such a request is not sent.
	ErrInvalidPath error = &sentinel{"invalid path", zk.ErrInvalidPath}

	// ErrTooLarge says that a request is above the limit of WithMaxRequest. It
	// was not sent: a server hangs up on a frame that is too long for it.
	ErrTooLarge = errors.New("session: request too large")

	// ErrAnswerTooLarge says that the answer to a read is above the limit of
	// WithMaxAnswer. Such an answer breaks the connection, so the read is repeated
	// once and not again.
	ErrAnswerTooLarge = errors.New("session: answer too large")

	// ErrAnswerTooSlow says that the answer to a read arrived too slowly, and broke
	// the connection: at less than 16 KiB/s for longer than the session timeout, or so
	// slowly that something held would have been lost behind it. The text has the
	// speed. The read is repeated once and not again, or three times if the answer
	// stopped in the middle.
	ErrAnswerTooSlow = errors.New("session: answer too slow")

	// ErrStale says that nothing may be granted at present, because the session
	// is not proven alive: see Lease.Hold. The session may be alive.
	ErrStale = errors.New("session: not proven alive at present")

	// ErrNotOwned says that the znode of a Lease does not exist any more.
	ErrNotOwned = errors.New("session: the znode of the lease does not exist any more")

	// ErrConflict says that somebody else's znode has the name of an Ephemeral,
	// and whose it is.
	ErrConflict error = &sentinel{"somebody else's znode has that name", zk.ErrNodeExists}

	// ErrEphemeralClosed says that Ephemeral.Close was called.
	ErrEphemeralClosed = errors.New("session: ephemeral closed")
)

type sentinel struct {
	text string
	zk   error
}

func (s *sentinel) Error() string { return "session: " + s.text }
func (s *sentinel) Unwrap() error { return s.zk }

// Error is what a failed operation returns. It unwraps to the sentinels of
// this package and to go-zookeeper's errors.
type Error struct {
	Op   string // the operation, as "create" or "multi"
	Path string // the znode, relative to the chroot; empty where there is none
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
