package zkserver

import "time"

// Op is one request that the server was asked, a ConnectRequest included. What a
// partition or a frozen server swallowed is not there: nobody saw it. A watch event
// that was struck by a [Fault] is there too, and no other.
type Op struct {
	Time     time.Time
	Session  int64  // for a connect the session asked for, and once it is done the one given
	Endpoint int    // that was asked, from 1
	Conn     uint64 // tells connections apart, in the order in which they came
	Xid      int32
	Code     OpCode
	Path     string    // as asked, without the number of a sequential create
	Sub      []SubOp   // of a multi
	Zxid     int64     // in the header of the reply
	Err      int32     // in the header of the reply; 0 is success
	Done     bool      // it was carried out or refused, whether or not the answer got through; an event was sent
	Event    EventType // of an OpWatchEvent
	Fault    string    // what was injected into it: each Action with its Moment, in order
}

// SubOp is one operation of a multi. Err is its own result.
type SubOp struct {
	Code OpCode
	Path string
	Err  int32
}

// opLog keeps the latest operations. Entry n is the nth since the last reset.
type opLog struct {
	kept   int
	most   int // bytes, if it is positive
	ring   []Op
	first  uint64 // number of the first entry after the last reset
	oldest uint64 // number of the oldest entry that is kept
	next   uint64
	bytes  int
}

// bytes is what an operation counts for in [Config.OpsBytes]. What is noted about an
// operation later does not count.
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

// at is nil for an entry that is not kept any more.
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

// amend notes that a fault answers something else.
func (l *opLog) amend(n uint64, code Code) {
	if op := l.at(n); op != nil {
		op.Err = int32(code)
	}
}
