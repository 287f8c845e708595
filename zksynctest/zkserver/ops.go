package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

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

// record notes a request that has just been decoded.
func (s *Server) record(c *conn, r *jute.Request, now time.Time) uint64 {
	return s.ops.add(opFrom(c, r, now))
}

func opFrom(c *conn, r *jute.Request, now time.Time) Op {
	op := Op{Time: now, Endpoint: c.ep.number, Conn: c.id, Xid: r.Xid, Code: r.Op, Path: r.Path}
	if c.sess != nil {
		op.Session = c.sess.id
	} else {
		op.Session = r.Connect.SessionID
	}
	if len(r.Subs) > 0 {
		op.Sub = make([]SubOp, len(r.Subs))
		for i := range r.Subs {
			op.Sub[i] = SubOp{Code: r.Subs[i].Op, Path: r.Subs[i].Path}
		}
	}
	return op
}

// opOf is what faults see of a request.
func (s *Server) opOf(t *subject) Op {
	op := s.ops.at(t.op)
	if op == nil { // so many have come since
		return opFrom(t.c, t.r, time.Now())
	}
	seen := *op
	seen.Sub = slices.Clone(op.Sub)
	return seen
}

// noteFault adds to what was injected into an operation.
func (s *Server) noteFault(n uint64, inj *Injection) {
	op := s.ops.at(n)
	if op == nil {
		return
	}
	if op.Fault != "" {
		op.Fault += ", "
	}
	op.Fault += inj.fault.Do.String() + " " + inj.fault.At.String()
}

// noteSent notes that an event was sent after its faults.
func (s *Server) noteSent(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.ops.at(n); op != nil {
		op.Done = true
	}
}

// finish notes what became of it.
func (s *Server) finish(n uint64, c *conn, res result, subs []jute.Request) {
	op := s.ops.at(n)
	if op == nil {
		return
	}
	op.Done = !res.silent || res.hangUp || res.lost
	op.Zxid, op.Err = res.zxid, int32(res.code)
	if c.sess != nil {
		op.Session = c.sess.id
	}
	for i := range op.Sub {
		op.Sub[i].Err = int32(subs[i].Code)
	}
}

// amend notes that a fault answers something else.
func (s *Server) amend(n uint64, code Code) {
	if op := s.ops.at(n); op != nil {
		op.Err = int32(code)
	}
}

// Ops returns the operations the server was asked, in the order in which they
// came: the latest of them, as many as [Config.OpsKept] and [Config.OpsBytes] allow.
func (s *Server) Ops() []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops.list()
}

// ResetOps forgets the operations so far.
func (s *Server) ResetOps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = opLog{kept: s.ops.kept, most: s.ops.most, first: s.ops.next, oldest: s.ops.next, next: s.ops.next}
}
