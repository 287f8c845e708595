package zkserver

import "github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"

// OpCode is the type of a request in the request header.
type OpCode = jute.OpCode

// The operations that this package knows. OpConnect and OpWatchEvent never appear in a header: they
// denote a ConnectRequest and a watch event in a [Fault] and an [Op].
const (
	OpCreate               = jute.OpCreate
	OpDelete               = jute.OpDelete
	OpExists               = jute.OpExists
	OpGetData              = jute.OpGetData
	OpSetData              = jute.OpSetData
	OpGetACL               = jute.OpGetACL
	OpSetACL               = jute.OpSetACL
	OpGetChildren          = jute.OpGetChildren
	OpSync                 = jute.OpSync
	OpPing                 = jute.OpPing
	OpGetChildren2         = jute.OpGetChildren2
	OpCheck                = jute.OpCheck
	OpMulti                = jute.OpMulti
	OpCreate2              = jute.OpCreate2
	OpReconfig             = jute.OpReconfig
	OpCheckWatches         = jute.OpCheckWatches
	OpRemoveWatches        = jute.OpRemoveWatches
	OpCreateContainer      = jute.OpCreateContainer
	OpDeleteContainer      = jute.OpDeleteContainer
	OpCreateTTL            = jute.OpCreateTTL
	OpMultiRead            = jute.OpMultiRead
	OpAuth                 = jute.OpAuth
	OpSetWatches           = jute.OpSetWatches
	OpSASL                 = jute.OpSASL
	OpGetEphemerals        = jute.OpGetEphemerals
	OpGetAllChildrenNumber = jute.OpGetAllChildrenNumber
	OpSetWatches2          = jute.OpSetWatches2
	OpAddWatch             = jute.OpAddWatch
	OpWhoAmI               = jute.OpWhoAmI
	OpCloseSession         = jute.OpCloseSession
	OpConnect              = jute.OpConnect
	OpWatchEvent           = jute.OpWatchEvent
)

// Code is an error code of the protocol. Code implements error, so that errors.Is finds a Code in
// the errors of the operator calls of a [Server].
type Code = jute.Code

// The codes that this server answers. Code 0 means success and is never returned as an error.
const (
	ErrSystem                  = jute.ErrSystem
	ErrRuntimeInconsistency    = jute.ErrRuntimeInconsistency
	ErrMarshalling             = jute.ErrMarshalling
	ErrUnimplemented           = jute.ErrUnimplemented
	ErrBadArguments            = jute.ErrBadArguments
	ErrNoNode                  = jute.ErrNoNode
	ErrNoAuth                  = jute.ErrNoAuth
	ErrBadVersion              = jute.ErrBadVersion
	ErrNoChildrenForEphemerals = jute.ErrNoChildrenForEphemerals
	ErrNodeExists              = jute.ErrNodeExists
	ErrNotEmpty                = jute.ErrNotEmpty
	ErrSessionExpired          = jute.ErrSessionExpired
	ErrInvalidACL              = jute.ErrInvalidACL
	ErrAuthFailed              = jute.ErrAuthFailed
	ErrSessionMoved            = jute.ErrSessionMoved
	ErrNotReadOnly             = jute.ErrNotReadOnly
	ErrNoWatcher               = jute.ErrNoWatcher
	ErrRequestTimeout          = jute.ErrRequestTimeout
	ErrReconfigDisabled        = jute.ErrReconfigDisabled
	ErrSASLRequired            = jute.ErrSASLRequired
	ErrQuotaExceeded           = jute.ErrQuotaExceeded
	ErrThrottledOp             = jute.ErrThrottledOp
)

// EventType is the type of a watch event on the wire.
type EventType = jute.EventType

// The types of watch events.
const (
	EventCreated         = jute.EventCreated
	EventDeleted         = jute.EventDeleted
	EventDataChanged     = jute.EventDataChanged
	EventChildrenChanged = jute.EventChildrenChanged
)

// ACL is one entry of an access control list.
type ACL = jute.ACL
