package wire

// A Request is an operation and its encoded record. It may be sent several times, and must
// not be changed after the first time.
type Request struct {
	Op     int32
	Path   string   // as the server knows the path; empty for several
	Parts  []Target // of a transaction
	Record []byte   // the encoded fields

	Own  bool // the Manager makes the request, and no caller
	Beat bool // the request is a transaction that only proves the session alive

	// Answered is called when the answer has arrived, in the goroutine that reads the
	// connection: before any other frame is looked at. It must not block. It may be nil.
	Answered func(*Call)
	// Late is called with the outcome if the caller has gone. It may be nil.
	Late func(*Call)
}

// A Target is the znode of one operation of a transaction.
type Target struct {
	Op   int32
	Path string // as the server knows the path
}

// Reads reports whether the request changes nothing on the servers.
func (r *Request) Reads() bool {
	switch r.Op {
	case OpGetData, OpExists, OpGetChildren2, OpMultiRead, OpSync:
		return true
	}
	return false
}

// OfCaller reports whether the request serves a caller, and does not keep the connection
// or the session alive.
func (r *Request) OfCaller() bool {
	switch r.Op {
	case OpPing, OpSync, OpSASL, OpSetWatches, OpRemoveWatches:
		return false
	}
	return !r.Beat
}

// asksLeader reports whether a follower passes the request on to its leader.
func (r *Request) asksLeader() bool {
	switch r.Op {
	case OpSync, OpCreate, OpCreateContainer, OpDelete, OpSetData, OpMulti:
		return true
	}
	return false
}
