package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// record adds a decoded request to the log and returns the number of its entry.
func (c *conn) record(r *jute.Request, now time.Time) uint64 {
	s := c.s
	return s.faults.ops.add(opFrom(c, r, now))
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

// finish records the result of the request, in the log too if the log still has it. The caller holds mu.
func (t *subject) finish(res result) {
	t.done, t.res = true, res
	if op := t.c.s.faults.ops.at(t.op); op != nil {
		op.finish(t.c, res, t.r.Subs)
	}
}

// finish adds the result of a request of c.
func (op *Op) finish(c *conn, res result, subs []jute.Request) {
	op.Done = !res.silent || res.hangUp || res.lost
	op.Zxid, op.Err = res.zxid, int32(res.code)
	if c.sess != nil {
		op.Session = c.sess.id
	}
	for i := range op.Sub {
		op.Sub[i].Err = int32(subs[i].Code)
	}
}

// Ops returns the operations that the server received, in order: the latest operations, as many as
// [Config.OpsKept] and [Config.OpsBytes] allow.
func (s *Server) Ops() []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.ops.list()
}

// ResetOps clears the list of operations.
func (s *Server) ResetOps() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.ops = opLog{kept: s.faults.ops.kept, most: s.faults.ops.most, first: s.faults.ops.next, oldest: s.faults.ops.next, next: s.faults.ops.next}
}
