package wire

// The operations of the protocol that the client uses.
const (
	OpCreate          int32 = 1
	OpDelete          int32 = 2
	OpExists          int32 = 3
	OpGetData         int32 = 4
	OpSetData         int32 = 5
	OpGetChildren     int32 = 8
	OpSync            int32 = 9
	OpPing            int32 = 11
	OpGetChildren2    int32 = 12
	OpCheck           int32 = 13
	OpMulti           int32 = 14
	OpCreate2         int32 = 15
	OpRemoveWatches   int32 = 18
	OpCreateContainer int32 = 19
	OpMultiRead       int32 = 22
	OpSetWatches      int32 = 101
	OpSASL            int32 = 102

	opAuth         int32 = 100
	opCloseSession int32 = -11
)

var opNames = map[int32]string{
	OpCreate: "create", OpCreateContainer: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "get",
	OpSetData: "set", OpSync: "sync", OpGetChildren2: "children", OpMulti: "multi", OpMultiRead: "multiRead",
	OpRemoveWatches: "removeWatches", OpSetWatches: "setWatches", OpPing: "ping", OpCheck: "check", OpSASL: "sasl",
}

// OpName returns the name of an operation in errors, log lines and events.
func OpName(op int32) string { return opNames[op] }

// The error codes in answers that decide something in this package.
const (
	CodeUnimplemented        int32 = -6 // the server does not know the operation
	CodeRuntimeInconsistency int32 = -2 // of an operation in a transaction: another operation has failed
)
