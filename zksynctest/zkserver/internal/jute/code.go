package jute

import "strconv"

// Code is an error code of the protocol. It is an error, so that errors.Is finds it.
type Code int32

// The codes of the server. Code 0 means success and is never returned as an error.
const (
	ErrSystem                  Code = -1
	ErrRuntimeInconsistency    Code = -2
	ErrMarshalling             Code = -5
	ErrUnimplemented           Code = -6
	ErrBadArguments            Code = -8
	ErrNoNode                  Code = -101
	ErrNoAuth                  Code = -102
	ErrBadVersion              Code = -103
	ErrNoChildrenForEphemerals Code = -108
	ErrNodeExists              Code = -110
	ErrNotEmpty                Code = -111
	ErrSessionExpired          Code = -112
	ErrInvalidACL              Code = -114
	ErrAuthFailed              Code = -115
	ErrSessionMoved            Code = -118
	ErrNotReadOnly             Code = -119
	ErrNoWatcher               Code = -121
	ErrRequestTimeout          Code = -122
	ErrReconfigDisabled        Code = -123
	ErrSASLRequired            Code = -124
	ErrQuotaExceeded           Code = -125
	ErrThrottledOp             Code = -127
)

const OK Code = 0

var codeNames = map[Code]string{
	OK:                         "ok",
	ErrSystem:                  "system error",
	ErrRuntimeInconsistency:    "runtime inconsistency",
	ErrMarshalling:             "marshalling error",
	ErrUnimplemented:           "unimplemented",
	ErrBadArguments:            "bad arguments",
	ErrNoNode:                  "no node",
	ErrNoAuth:                  "no auth",
	ErrBadVersion:              "bad version",
	ErrNoChildrenForEphemerals: "no children for ephemerals",
	ErrNodeExists:              "node exists",
	ErrNotEmpty:                "not empty",
	ErrSessionExpired:          "session expired",
	ErrInvalidACL:              "invalid acl",
	ErrAuthFailed:              "auth failed",
	ErrSessionMoved:            "session moved",
	ErrNotReadOnly:             "not read-only",
	ErrNoWatcher:               "no watcher",
	ErrRequestTimeout:          "request timeout",
	ErrReconfigDisabled:        "reconfig disabled",
	ErrSASLRequired:            "session closed, require sasl auth",
	ErrQuotaExceeded:           "quota exceeded",
	ErrThrottledOp:             "throttled",
}

// String returns the code in words.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return "code " + strconv.Itoa(int(c))
}

// Error makes Code an error.
func (c Code) Error() string { return "zkserver: " + c.String() }
