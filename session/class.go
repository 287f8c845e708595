package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// A Class is the meaning of a call's error for the code that made the call. Code that
// uses this package must decide by the class of an error, and never by errors.Is: the
// error of a call whose ctx ended wraps the cause of that ctx, and the cause may wrap any
// error, even ErrLost or zk.ErrNoNode.
type Class uint8

const (
	// ClassOK is the class of nil.
	ClassOK Class = iota
	// ClassCancelled: the ctx of the call ended. The request may or may not have
	// been carried out.
	ClassCancelled
	// ClassClosed: the Manager was closed.
	ClassClosed
	// ClassRemoved: another client removed a znode of ours. The session lives, unless a server is
	// just ending it.
	ClassRemoved
	// ClassLost: the session is gone. Another session may succeed.
	ClassLost
	// ClassConnectionLost: no answer shows whether the request was carried out. The
	// session may live.
	ClassConnectionLost
	// ClassTransient: the request was not carried out, and may succeed later.
	ClassTransient
	// ClassNoNode: the znode does not exist, or its parent does not.
	ClassNoNode
	// ClassNodeExists: the znode exists already.
	ClassNodeExists
	// ClassBadVersion: the znode has another version than the request names.
	ClassBadVersion
	// ClassNotEmpty: the znode has children.
	ClassNotEmpty
	// ClassNoAuth: the ACL forbids the request.
	ClassNoAuth
	// ClassTooLarge: the request is too large, and was not sent.
	ClassTooLarge
	// ClassFinal: the request was refused for another reason that will not go away.
	ClassFinal
	// ClassUnknown: the error is not in the table of ClassOf. The request may or
	// may not have been carried out.
	ClassUnknown
)

var classNames = [...]string{"OK", "Cancelled", "Closed", "Removed", "Lost", "ConnectionLost", "Transient", "NoNode",
	"NodeExists", "BadVersion", "NotEmpty", "NoAuth", "TooLarge", "Final", "Unknown"}

func (c Class) String() string { return nameOf(classNames[:], uint8(c), "Class") }

// nameOf returns the name of a value whose type counts from 0.
func nameOf(names []string, value uint8, of string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", of, value)
}

// Again reports whether an operation that is safe to repeat should be repeated, under
// this session or a new one.
func (c Class) Again() bool {
	return c == ClassLost || c == ClassConnectionLost || c == ClassTransient
}

// pending reports whether the removal of a znode must be repeated, because the znode may
// exist and the next attempt may succeed.
func (c Class) pending() bool {
	return c == ClassConnectionLost || c == ClassTransient || c == ClassUnknown
}

// sentinels are the errors that have a class, in order of precedence: an error that wraps
// two sentinels has the class of the first.
var sentinels = []struct {
	err   error
	class Class
}{
	{ErrClosed, ClassClosed},
	{errNotRemoved, ClassTransient},
	{ErrRemoved, ClassRemoved},
	{ErrNotOwned, ClassRemoved},
	{ErrLost, ClassLost},
	{ErrConnectionLost, ClassConnectionLost},
	{errOtherConnection, ClassTransient},
	{wire.ErrUnsent, ClassConnectionLost},
	{ErrStale, ClassTransient},
	{ErrTooLarge, ClassTooLarge},
	{ErrAnswerTooLarge, ClassFinal},
	{ErrAnswerTooSlow, ClassFinal},
	{ErrNoChroot, ClassFinal},
	{ErrMisconfigured, ClassFinal},
	{zk.ErrNoNode, ClassNoNode},
	{zk.ErrNodeExists, ClassNodeExists}, // matches ErrConflict too
	{zk.ErrBadVersion, ClassBadVersion},
	{zk.ErrNotEmpty, ClassNotEmpty},
	{zk.ErrNoAuth, ClassNoAuth},
	{ErrInvalidPath, ClassFinal},
	{ErrInvalidOption, ClassFinal},
	{ErrInvalidServers, ClassFinal},
	{ErrAuthFailed, ClassFinal},
	{ErrEphemeralClosed, ClassFinal},
	{errClosing, ClassTransient},
	{errLeaseEnded, ClassFinal},
	{zk.ErrNoChildrenForEphemerals, ClassFinal},
	{zk.ErrInvalidACL, ClassFinal},
	{zk.ErrInvalidFlags, ClassFinal},
	{zk.ErrBadArguments, ClassFinal},
	{zk.ErrReconfigDisabled, ClassFinal},
}

// IsAnswerTooLarge reports whether err says that the answer to a read was too large. Unlike
// errors.Is(err, ErrAnswerTooLarge), it does not look into the cause of a ctx.
func IsAnswerTooLarge(err error) bool {
	return isFinal(err, ErrAnswerTooLarge)
}

// IsAnswerTooSlow is IsAnswerTooLarge for ErrAnswerTooSlow.
func IsAnswerTooSlow(err error) bool { return isFinal(err, ErrAnswerTooSlow) }

// isFinal reports whether err has ClassFinal and wraps sentinel.
func isFinal(err, sentinel error) bool { return ClassOf(err) == ClassFinal && errors.Is(err, sentinel) }

// A refusal describes an error code by which a server refuses a request.
type refusal struct {
	name  string
	class Class
	err   error // errors.Is matches it against the error of the call
	// hangUp reports whether the code is about the connection or the session and not
	// about the request. The connection is then unusable.
	hangUp bool
}

// refusals are the error codes of ZooKeeper 3.8 and 3.9 (KeeperException). A code of
// ClassUnknown reports a failure inside a server or a client library. It proves nothing
// about the request.
var refusals = map[int32]refusal{
	-1: {name: "system error", class: ClassUnknown},
	-2: {name: "runtime inconsistency", class: ClassUnknown}, // within a transaction: another operation failed
	-3: {name: "data inconsistency", class: ClassUnknown},
	-4: {name: "connection loss", class: ClassConnectionLost, err: ErrConnectionLost},
	-5: {name: "marshalling error", class: ClassUnknown},
	-6: {name: "unimplemented", class: ClassFinal},
	// The answer does not show whether a request that timed out was carried out.
	-7:  {name: "operation timeout", class: ClassConnectionLost, err: ErrConnectionLost},
	-8:  {name: "bad arguments", class: ClassFinal, err: zk.ErrBadArguments},
	-12: {name: "unknown session", class: ClassLost, err: ErrLost, hangUp: true},
	-13: {name: "no quorum of the new configuration", class: ClassFinal},
	-14: {name: "reconfiguration in progress", class: ClassTransient},

	-100: {name: "API error", class: ClassUnknown, err: zk.ErrAPIError},
	-101: {name: "no node", class: ClassNoNode, err: zk.ErrNoNode},
	-102: {name: "no auth", class: ClassNoAuth, err: zk.ErrNoAuth},
	-103: {name: "bad version", class: ClassBadVersion, err: zk.ErrBadVersion},
	-108: {name: "no children for ephemerals", class: ClassFinal, err: zk.ErrNoChildrenForEphemerals},
	-110: {name: "node exists", class: ClassNodeExists, err: zk.ErrNodeExists},
	-111: {name: "not empty", class: ClassNotEmpty, err: zk.ErrNotEmpty},
	-112: {name: "session expired", class: ClassLost, err: ErrLost, hangUp: true},
	-113: {name: "invalid callback", class: ClassFinal},
	-114: {name: "invalid ACL", class: ClassFinal, err: zk.ErrInvalidACL},
	-115: {name: "authentication failed", class: ClassFinal, err: ErrAuthFailed},
	-118: {name: "session moved", class: ClassConnectionLost, err: ErrConnectionLost, hangUp: true},
	// The server has lost its quorum and serves only readers. Another server may accept
	// the request.
	-119: {name: "read-only server", class: ClassTransient, hangUp: true},
	-120: {name: "ephemeral on a local session", class: ClassFinal},
	-121: {name: "no such watcher", class: ClassFinal},
	-122: {name: "request timeout", class: ClassConnectionLost, err: ErrConnectionLost},
	-123: {name: "reconfiguration disabled", class: ClassFinal, err: zk.ErrReconfigDisabled},
	-124: {name: "the server wants SASL authentication", class: ClassFinal},
	-125: {name: "quota exceeded", class: ClassFinal},
	// A server throttles a request before it processes the request. So the request was
	// not carried out and left no watch.
	-127: {name: "throttled", class: ClassTransient},
}

// classOfCode returns the Class of the error code of an answer.
func classOfCode(code int32) Class {
	if code == 0 {
		return ClassOK
	}
	if r, ok := refusals[code]; ok {
		return r.class
	}
	// A code of a later version of ZooKeeper. Whether the request was carried out is
	// unknown.
	return ClassUnknown
}

// A codeError is the error of an answer whose code has no error in go-zookeeper or in
// this package.
type codeError struct {
	code int32
	refusal
}

func (e *codeError) Error() string {
	return fmt.Sprintf("%v: %s (code %d)", e.Unwrap(), e.name, e.code)
}

func (e *codeError) Unwrap() error {
	if e.err != nil {
		return e.err
	}
	return zk.ErrUnknown
}

// errorOfCode returns the error for the code of an answer, nil for code zero.
func errorOfCode(code int32) error {
	if code == 0 {
		return nil
	}
	r, ok := refusals[code]
	if !ok {
		return &codeError{code, refusal{name: "not a code of ZooKeeper 3.9", class: ClassUnknown}}
	}
	// Several codes have ErrConnectionLost, and the text must show which code it was.
	if r.err != nil && r.err != ErrConnectionLost {
		return r.err
	}
	return &codeError{code, r}
}

// ClassOf returns the class of err. Every error that a call of this package can return
// has a class in its table. Any other error, for example the result of a caller's
// function, gets the class of the error of this package or of go-zookeeper that it wraps,
// or ClassUnknown.
//
// The end of a ctx has precedence: the error of a call that its ctx ended is
// ClassCancelled, even if the cause of the ctx wraps an error with another class.
func ClassOf(err error) Class {
	if err == nil {
		return ClassOK
	}
	// Ahead of the table: the cause of a ctx may wrap any error of the table.
	var end *ctxError
	if errors.As(err, &end) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ClassCancelled
	}
	// The dialer or the SASL mechanism behind a finalError may have wrapped any error, too.
	var final *finalError
	if errors.As(err, &final) {
		return ClassFinal
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.class
		}
	}
	var answer *codeError
	if errors.As(err, &answer) {
		return answer.class
	}
	return ClassUnknown
}

// These codes change the behaviour of this package. All other codes only become errors.
const (
	codeNoNode     int32 = -101
	codeNoAuth     int32 = -102
	codeAuthFailed int32 = -115
	codeNoWatcher  int32 = -121
	codeWantsSASL  int32 = -124
	codeQuota      int32 = -125
)

// exceedsQuota reports whether a server has refused a write because of a quota.
func exceedsQuota(err error) bool {
	var answer *codeError
	return errors.As(err, &answer) && answer.code == codeQuota
}

// judgesCredentials reports whether a server that answers credentials by the code has checked the
// credentials. After any other code, another server or a later attempt may accept them.
func judgesCredentials(code int32) bool {
	// A server that requires SASL refuses by codeWantsSASL.
	return code == 0 || code == codeAuthFailed || code == codeWantsSASL
}

// credentialError returns the error of an answer to credentials, nil for code zero.
func credentialError(code int32) error {
	err := errorOfCode(code)
	switch {
	case code == 0 || code == codeAuthFailed:
		return err
	case judgesCredentials(code):
		return fmt.Errorf("%w: %w", ErrAuthFailed, err)
	}
	return fmt.Errorf("the server did not check the credentials: %w", err)
}
