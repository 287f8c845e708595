package zkserver

// request is one decoded request, or one operation within a multi. It is used
// again for the next request of its connection, and data and auth alias the
// frame it came in.
type request struct {
	xid     int32
	op      OpCode
	bad     bool // the record did not decode
	path    string
	null    bool // the path was null, and not just empty
	data    []byte
	version int32
	acl     []ACL
	flags   int32
	ttl     int64
	watch   bool
	kind    int32 // of a watch to add, to remove or to look for
	scheme  string
	auth    []byte
	relZxid int64
	rearm   [5][]string // setWatches: data, exist, child, persistent, recursive
	subs    []request
	hollow  bool // a multiRead of writes: its error comes with an empty result
	code    Code // what became of it within a multi
	connect connectRequest
}

// decode reads the record that belongs to r.op. Bytes behind it are ignored, as
// the real server does.
func (r *request) decode(d *decoder) {
	*r = request{xid: r.xid, op: r.op, subs: r.subs[:0], acl: r.acl[:0]}
	switch r.op {
	case OpMulti, OpMultiRead:
		r.decodeMulti(d)
	default:
		r.decodeRecord(d)
	}
	r.bad = d.bad
	if r.bad {
		r.path, r.acl, r.subs = "", r.acl[:0], r.subs[:0]
	}
}

func (r *request) decodeRecord(d *decoder) {
	switch r.op {
	case OpConnect:
		r.connect.decode(d)
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		r.path, r.null = d.path()
		r.data, r.acl, r.flags = d.buffer(), d.acls(r.acl), d.int32()
		r.ttl = -1
		if r.op == OpCreateTTL {
			r.ttl = d.int64()
		}
	case OpDelete, OpCheck:
		r.path, r.null = d.path()
		r.version = d.int32()
	case OpSetData:
		r.path, r.null = d.path()
		r.data, r.version = d.buffer(), d.int32()
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		r.path, r.null = d.path()
		r.watch = d.bool()
	case OpGetACL:
		r.path = d.str()
	case OpSetACL:
		r.path, r.null = d.path()
		r.acl, r.version = d.acls(r.acl), d.int32()
	case OpReconfig:
		for range 3 {
			d.nullableStr()
		}
		d.int64()
	case OpSync:
		r.path, r.null = d.path()
	case OpGetAllChildrenNumber:
		r.path = d.str()
	case OpGetEphemerals:
		r.path = d.nullableStr()
	case OpAddWatch:
		r.path, r.kind = d.nullableStr(), d.int32()
	case OpCheckWatches, OpRemoveWatches:
		r.path, r.null = d.path()
		r.kind = d.int32()
	case OpAuth:
		d.int32() // a type that nobody uses
		r.scheme, r.auth = d.nullableStr(), d.buffer()
	case OpSASL:
		r.auth = d.buffer()
		r.null = r.auth == nil
	case OpSetWatches, OpSetWatches2:
		r.relZxid = d.int64()
		lists := r.rearm[:3]
		if r.op == OpSetWatches2 {
			lists = r.rearm[:]
		}
		for i := range lists {
			lists[i] = d.strs()
		}
	}
}

// addSub uses the room that an earlier request has left.
func (r *request) addSub(op OpCode) *request {
	n := len(r.subs)
	if n == cap(r.subs) {
		r.subs = append(r.subs, request{})
	}
	r.subs = r.subs[:n+1]
	sub := &r.subs[n]
	*sub = request{op: op, acl: sub.acl[:0]}
	return sub
}

// decodeMulti reads operations up to the closing header. Reads and writes do not
// stand together, and the answer to that, and to a kind that cannot be in any
// multi, is that of a record that cannot be read.
func (r *request) decodeMulti(d *decoder) {
	kind := r.op
	for {
		op, done := OpCode(d.int32()), d.bool()
		d.int32()
		if d.bad || done {
			break
		}
		was := kind
		switch op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpSetData, OpCheck:
			kind = OpMulti
		case OpGetData, OpGetChildren:
			kind = OpMultiRead
		default:
			d.bad = true
		}
		if d.bad = d.bad || len(r.subs) > 0 && kind != was; d.bad {
			return
		}
		r.addSub(op).decodeRecord(d)
	}
	if !d.bad && kind != r.op {
		d.bad, r.hollow = true, kind == OpMulti
	}
}
