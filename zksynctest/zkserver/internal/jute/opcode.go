package jute

import "strconv"

// OpCode is the type of a request, as it stands in the request header.
type OpCode int32

// The operations. OpConnect and OpWatchEvent never stand in the header of a request: they
// name a ConnectRequest and a watch event.
const (
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpCloseSession         OpCode = -11
	OpConnect              OpCode = -1000
	OpWatchEvent           OpCode = -1001
)

// OpError is the result type of a failed sub-operation of a multi, and the type
// of the header that ends one.
const OpError OpCode = -1

var opNames = map[OpCode]string{
	OpCreate:               "create",
	OpDelete:               "delete",
	OpExists:               "exists",
	OpGetData:              "getData",
	OpSetData:              "setData",
	OpGetACL:               "getACL",
	OpSetACL:               "setACL",
	OpGetChildren:          "getChildren",
	OpSync:                 "sync",
	OpPing:                 "ping",
	OpGetChildren2:         "getChildren2",
	OpCheck:                "check",
	OpMulti:                "multi",
	OpCreate2:              "create2",
	OpReconfig:             "reconfig",
	OpCheckWatches:         "checkWatches",
	OpRemoveWatches:        "removeWatches",
	OpCreateContainer:      "createContainer",
	OpDeleteContainer:      "deleteContainer",
	OpCreateTTL:            "createTTL",
	OpMultiRead:            "multiRead",
	OpAuth:                 "auth",
	OpSetWatches:           "setWatches",
	OpSASL:                 "sasl",
	OpGetEphemerals:        "getEphemerals",
	OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpSetWatches2:          "setWatches2",
	OpAddWatch:             "addWatch",
	OpWhoAmI:               "whoAmI",
	OpCloseSession:         "closeSession",
	OpConnect:              "connect",
	OpWatchEvent:           "watchEvent",
}

// String returns the name the ZooKeeper sources give the operation.
func (op OpCode) String() string {
	if name, ok := opNames[op]; ok {
		return name
	}
	return "op " + strconv.Itoa(int(op))
}

// NeedsLeader reports whether a follower asks its leader for the answer.
func (op OpCode) NeedsLeader() bool { return op == OpSync || op.IsWrite() }

// Throttlable reports whether a server that throttles refuses the operation.
func (op OpCode) Throttlable() bool {
	switch op {
	case OpPing, OpCloseSession, OpConnect, OpAuth, OpSASL:
		return false
	}
	return op.Known() // an unknown operation is answered ErrUnimplemented first
}

// Known reports whether the operation has a name.
func (op OpCode) Known() bool {
	_, ok := opNames[op]
	return ok
}

// IsWrite reports whether the operation goes through the leader. Such an operation takes a
// zxid even if it fails.
func (op OpCode) IsWrite() bool {
	switch op {
	case OpCreate, OpDelete, OpSetData, OpSetACL, OpCheck, OpMulti, OpCreate2,
		OpReconfig, OpCreateContainer, OpDeleteContainer, OpCreateTTL, OpCloseSession:
		return true
	}
	return false
}
