package jute

// Request is one decoded request, or one operation within a multi. A connection uses the
// same Request again for its next request. Data and Auth alias the frame of the request.
type Request struct {
	Xid     int32
	Op      OpCode
	Bad     bool // the record did not decode
	Path    string
	Null    bool // the path was null, and not just empty
	Data    []byte
	Version int32
	ACL     []ACL
	Flags   int32
	TTL     int64
	Watch   bool
	Kind    int32 // of a watch to add, to remove or to check
	Scheme  string
	Auth    []byte
	RelZxid int64
	Rearm   [5][]string // setWatches: data, exist, child, persistent, recursive
	Subs    []Request
	Hollow  bool // a multiRead of writes: its error comes with an empty result
	Code    Code // the result of an operation within a multi
	Connect ConnectRequest
}

// Decode reads the record of r.Op. It ignores bytes behind the record, as a real server
// does.
func (r *Request) Decode(d *Decoder) {
	*r = Request{Xid: r.Xid, Op: r.Op, Subs: r.Subs[:0], ACL: r.ACL[:0]}
	switch r.Op {
	case OpMulti, OpMultiRead:
		r.decodeMulti(d)
	default:
		r.decodeRecord(d)
	}
	r.Bad = d.Bad
	if r.Bad {
		r.Path, r.ACL, r.Subs = "", r.ACL[:0], r.Subs[:0]
	}
}

func (r *Request) decodeRecord(d *Decoder) {
	switch r.Op {
	case OpConnect:
		r.Connect.decode(d)
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r.Path, r.Null = d.path()
		r.Data, r.ACL, r.Flags = d.Buffer(), d.ACLs(r.ACL), d.Int32()
		r.TTL = -1
		if r.Op == OpCreateTTL {
			r.TTL = d.Int64()
		}
	case OpDelete, OpCheck:
		r.Path, r.Null = d.path()
		r.Version = d.Int32()
	case OpSetData:
		r.Path, r.Null = d.path()
		r.Data, r.Version = d.Buffer(), d.Int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		r.Path, r.Null = d.path()
		r.Watch = d.Bool()
	case OpGetACL:
		r.Path = d.Text()
	case OpSetACL:
		r.Path, r.Null = d.path()
		r.ACL, r.Version = d.ACLs(r.ACL), d.Int32()
	case OpReconfig:
		for range 3 {
			d.nullableStr()
		}
		d.Int64()
	case OpSync:
		r.Path, r.Null = d.path()
	case OpGetAllChildrenNumber:
		r.Path = d.Text()
	case OpGetEphemerals:
		r.Path = d.nullableStr()
	case OpAddWatch:
		r.Path, r.Kind = d.nullableStr(), d.Int32()
	case OpCheckWatches, OpRemoveWatches:
		r.Path, r.Null = d.path()
		r.Kind = d.Int32()
	case OpAuth:
		d.Int32() // a type, which no server looks at
		r.Scheme, r.Auth = d.nullableStr(), d.Buffer()
	case OpSASL:
		r.Auth = d.Buffer()
		r.Null = r.Auth == nil
	case OpSetWatches, OpSetWatches2:
		r.RelZxid = d.Int64()
		lists := r.Rearm[:3]
		if r.Op == OpSetWatches2 {
			lists = r.Rearm[:]
		}
		for i := range lists {
			lists[i] = d.strs()
		}
	}
}

// addSub uses the room that an earlier request has left.
func (r *Request) addSub(op OpCode) *Request {
	n := len(r.Subs)
	if n == cap(r.Subs) {
		r.Subs = append(r.Subs, Request{})
	}
	r.Subs = r.Subs[:n+1]
	sub := &r.Subs[n]
	*sub = Request{Op: op, ACL: sub.ACL[:0]}
	return sub
}

// decodeMulti reads operations up to the closing header. A multi with
// both reads and writes, or with an operation that no multi can have, is a bad record.
func (r *Request) decodeMulti(d *Decoder) {
	kind := r.Op
	for {
		op, done := OpCode(d.Int32()), d.Bool()
		d.Int32()
		if d.Bad || done {
			break
		}
		was := kind
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			kind = OpMulti
		case OpGetData, OpGetChildren:
			kind = OpMultiRead
		default:
			d.Bad = true
		}
		if d.Bad = d.Bad || len(r.Subs) > 0 && kind != was; d.Bad {
			return
		}
		r.addSub(op).decodeRecord(d)
	}
	if !d.Bad && kind != r.Op {
		d.Bad, r.Hollow = true, kind == OpMulti
	}
}

// The flags of a create: not bits, but an enumeration.
const (
	FlagPersistent          = 0
	FlagEphemeral           = 1
	FlagSequential          = 2
	FlagEphemeralSequential = 3
	FlagContainer           = 4
	FlagTTL                 = 5
	FlagTTLSequential       = 6
)

// AsInMulti changes the operation of a create to the operation of its flags, because only
// the flags count within a multi. It also sets the type of the result.
func (r *Request) AsInMulti(answer *OpCode) Code {
	switch r.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
	default:
		return OK
	}
	switch {
	case r.Flags == FlagTTL || r.Flags == FlagTTLSequential:
		if r.Op != OpCreateTTL {
			return ErrMarshalling // it has no ttl
		}
		*answer = OpCreate2
		return OK
	case r.Flags == FlagContainer:
		r.Op, *answer = OpCreateContainer, OpCreate2
	case r.Op != OpCreate2:
		r.Op, *answer = OpCreate, OpCreate
	}
	r.TTL = -1
	return OK
}
