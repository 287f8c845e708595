package surroundings

import "github.com/go-zksync/toolkit/zksynctest/zkserver"

// Throttlable reports whether an overloaded server may refuse a request. A server never throttles
// pings, and the opening and the closing of a session. It handles auth before it queues requests.
func Throttlable(op zkserver.OpCode) bool {
	switch op {
	case zkserver.OpConnect, zkserver.OpPing, zkserver.OpCloseSession, zkserver.OpAuth:
		return false
	}
	return true
}

// GoesToLeader reports whether a server forwards a request to the leader: also a connect, which opens
// or touches a session there.
func GoesToLeader(op zkserver.OpCode) bool {
	switch op {
	case zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpCreateContainer, zkserver.OpCreateTTL, zkserver.OpDelete,
		zkserver.OpSetData, zkserver.OpMulti, zkserver.OpSync, zkserver.OpCloseSession, zkserver.OpConnect:
		return true
	}
	return false
}

// Writes reports whether a request changes the tree.
func Writes(op zkserver.OpCode) bool {
	return GoesToLeader(op) && Throttlable(op) && op != zkserver.OpSync
}

// Reads reports whether a request reads the tree.
func Reads(op zkserver.OpCode) bool { return Throttlable(op) && !GoesToLeader(op) }
