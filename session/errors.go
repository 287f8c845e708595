package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
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

	// ErrConnectionLost says that the connection broke before the answer to a
	// request that cannot safely be repeated: it may or may not have happened.
	// The session may well live on.
	ErrConnectionLost error = &sentinel{"connection lost before the answer, the request may or may not have happened", zk.ErrConnectionClosed}

	// ErrClosed says that the Manager was closed.
	ErrClosed error = &sentinel{"manager closed", zk.ErrClosing}

	// ErrAuthFailed says that the servers refused a credential given by WithAuth.
	ErrAuthFailed error = &sentinel{"the server refused the credentials of WithAuth", zk.ErrAuthFailed}

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

// cancelled is the error of a call whose ctx has ended: it matches both
// ctx.Err() and the cause of the cancellation.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		if cause != nil {
			return cause
		}
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

var codeErrors = map[int32]error{
	-8:   zk.ErrBadArguments,
	-100: zk.ErrAPIError,
	-101: zk.ErrNoNode,
	-102: zk.ErrNoAuth,
	-103: zk.ErrBadVersion,
	-108: zk.ErrNoChildrenForEphemerals,
	-110: zk.ErrNodeExists,
	-111: zk.ErrNotEmpty,
	-112: ErrLost,
	-114: zk.ErrInvalidACL,
	-115: zk.ErrAuthFailed,
	-118: zk.ErrSessionMoved,
	-123: zk.ErrReconfigDisabled,
}

// codeNames names the codes that go-zookeeper has no error for.
var codeNames = map[int32]string{
	-1: "system error", -2: "runtime inconsistency", -3: "data inconsistency", -4: "connection loss",
	-5: "marshalling error", -6: "unimplemented", -7: "operation timeout", -13: "no quorum of the new configuration",
	-14: "reconfiguration in progress", -119: "read-only server", -120: "ephemeral on a local session",
	-121: "no such watcher", -122: "request timeout", -124: "the server wants SASL authentication",
	-125: "quota exceeded", -127: "throttled",
}

func codeError(code int32) error {
	if code == 0 {
		return nil
	}
	if err, ok := codeErrors[code]; ok {
		return err
	}
	if name, ok := codeNames[code]; ok {
		return fmt.Errorf("%w: %s (code %d)", zk.ErrUnknown, name, code)
	}
	return fmt.Errorf("%w: code %d", zk.ErrUnknown, code)
}

// errMalformed is the error of an answer that does not decode.
var errMalformed = errors.New("malformed answer")
