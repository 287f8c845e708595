package zkserver

import "time"

// Op is one request that the server received, or a ConnectRequest, or a watch event that a [Fault]
// struck. Requests that a partition or a frozen server swallowed, and other watch events, are not
// recorded.
type Op struct {
	Time     time.Time
	Session  int64  // for a connect the requested session, and the granted session once it is done
	Endpoint int    // number of the endpoint that received the request, from 1
	Conn     uint64 // number of the connection, in the order in which connections were accepted
	Xid      int32
	Code     OpCode
	Path     string    // as requested, without the number of a sequential create
	Sub      []SubOp   // operations of a multi
	Zxid     int64     // in the header of the reply
	Err      int32     // in the header of the reply; 0 is success
	Done     bool      // the request was carried out or refused, whether or not its reply arrived; the event was sent
	Event    EventType // of an OpWatchEvent
	Fault    string    // faults that struck: each Action with its Moment, in order
}

// SubOp is one operation of a multi. Err is the operation's own result.
type SubOp struct {
	Code OpCode
	Path string
	Err  int32
}

// opLog holds the latest operations. Entry n is the nth operation since the last reset.
type opLog struct {
	kept   int
	most   int // limit in bytes, if positive
	ring   []Op
	first  uint64 // number of the first entry after the last reset
	oldest uint64 // number of the oldest entry that is still in the log
	next   uint64
	bytes  int
}

// bytes returns the size of the operation as [Config.OpsBytes] counts it. Results and faults that
// are noted later do not count.
func (op *Op) bytes() int {
	n := 256 + len(op.Path)
	for i := range op.Sub {
		n += 40 + len(op.Sub[i].Path)
	}
	return n
}

func (l *opLog) add(op Op) uint64 {
	if l.next-l.oldest == uint64(l.kept) {
		l.forget()
	}
	if len(l.ring) < l.kept {
		l.ring = append(l.ring, op)
	} else {
		l.ring[(l.next-l.first)%uint64(l.kept)] = op
	}
	l.next++
	for l.bytes += op.bytes(); l.most > 0 && l.bytes > l.most && l.oldest < l.next-1; {
		l.forget()
	}
	return l.next - 1
}

// forget drops the oldest entry.
func (l *opLog) forget() {
	op := l.at(l.oldest)
	l.bytes -= op.bytes()
	*op = Op{}
	l.oldest++
}

// at returns entry n, or nil if the log has dropped it.
func (l *opLog) at(n uint64) *Op {
	if n < l.oldest || n >= l.next {
		return nil
	}
	return &l.ring[(n-l.first)%uint64(l.kept)]
}

func (l *opLog) list() []Op {
	list := make([]Op, 0, l.next-l.oldest)
	for n := l.oldest; n < l.next; n++ {
		op := *l.at(n)
		op.Sub = append([]SubOp(nil), op.Sub...)
		list = append(list, op)
	}
	return list
}
