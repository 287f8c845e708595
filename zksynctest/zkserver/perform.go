package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// perform executes a request of a connection with a session, and leaves the record of the answer in
// c.reply.
func (c *conn) perform(r *jute.Request) result {
	s := c.s
	if r.Op == OpAuth && s.knows(r.Op) {
		return c.authenticate(r) // auth does not concern the session, and waits for nothing
	}
	if c.lacksSASL(r.Op) {
		return result{code: ErrSASLRequired, hangUp: true}
	}
	now := time.Now()
	if res, done := c.refer(r, now); done {
		return res
	}
	if !s.knows(r.Op) {
		return result{code: ErrUnimplemented, zxid: jute.NoZxid, hangUp: true}
	}
	if r.Op.IsWrite() {
		return c.performWrite(r, now)
	}
	if r.Op == OpSASL && (r.Bad || r.Null) {
		return result{silent: true, hangUp: true}
	}
	if r.Bad {
		if r.Hollow {
			c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
		}
		return result{code: ErrMarshalling, zxid: s.en.zxidOf(c.rep), whole: r.Hollow}
	}
	res := result{}
	switch r.Op {
	case OpPing:
	case OpSync:
		if r.Null {
			c.reply = jute.AppendBuffer(c.reply, nil)
		} else {
			c.reply = jute.AppendString(c.reply, r.Path)
		}
	case OpSASL:
		return c.authenticateSASL(r)
	case OpSetWatches, OpSetWatches2:
		c.rep.watches.Rearm(&c.client, c.treeOf(), r)
	case OpAddWatch:
		if res.code = c.rep.watches.Add(&c.client, r); res.code == jute.OK {
			c.reply = jute.AppendInt32(c.reply, int32(jute.OK)) // the record is an error code
		}
	case OpCheckWatches:
		res.code = c.rep.watches.Check(&c.client, r)
	case OpRemoveWatches:
		res.code = c.rep.watches.Remove(&c.client, r)
	case OpGetEphemerals:
		c.getEphemerals(r)
	case OpWhoAmI:
		c.whoAmI()
	case OpMultiRead:
		res.code, res.whole = c.multiRead(r), true
	default:
		res.code = c.performRead(r)
	}
	res.zxid = s.en.zxidOf(c.rep)
	return res
}

// refer tells the leader that the session is alive, and asks the leader for everything that the
// server of c cannot answer alone. It returns a result and true if the request is then complete: it
// was refused, or gets no answer.
func (c *conn) refer(r *jute.Request, now time.Time) (result, bool) {
	op := r.Op
	quiet, toLeader := result{silent: true}, op.NeedsLeader()
	if c.sess.local {
		c.heard = now
		if toLeader {
			return c.refuseWrite(op), true
		}
		return result{}, false
	}
	l, done := c.arrive(now)
	switch {
	case done:
		return quiet, true
	case !c.s.knows(op) && (l == nil || l.deposed):
		return result{}, false // the server refuses the operation without its leader
	case l == nil && toLeader:
		// The server has not noticed that it is cut off, and waits for the leader's answer.
		return c.rep.hold(c.sess.id), true
	case l == nil:
		return result{}, false
	case l.deposed:
		return c.referToDeposed(l, op)
	case c.sess.dead:
		if toLeader {
			c.catchUpFor() // the leader tells the endpoint that the session has ended
		}
		return quiet, c.rep.view == nil
	case l.sessions.find(c.sess.id) == nil && op != OpCloseSession && (op.IsWrite() || c.leads()):
		if toLeader {
			c.catchUpFor() // the refusal comes from the leader, behind all changes before it
		}
		return c.refuseClosing(r), true
	case !l.sessions.mayAsk(c.sess.id, c.ep) && mayNot(c, l, op):
		return c.moved(op, l), true
	case toLeader:
		c.catchUpFor()
	}
	return result{}, false
}

// arrive touches the session of c for a request. It returns the leadership that c's server can ask.
// done is true if the request gets no answer: a deposed leader has ended the session, or an earlier
// request of the session waits for the leader in vain.
func (c *conn) arrive(now time.Time) (l *leadership, done bool) {
	if l = c.leadership(); l != nil {
		l.expire(now)
	}
	alive := c.touch(l, now)
	return l, l != nil && l.deposed && !alive || c.rep.held[c.sess.id]
}

// referToDeposed is refer for a leader that can no longer commit. It answers requests that need no
// commit. It proposes the other requests, which then wait until the leadership ends.
func (c *conn) referToDeposed(l *leadership, op OpCode) (result, bool) {
	switch {
	case op.IsWrite():
		if ts := l.sessions.find(c.sess.id); op == OpCloseSession && ts != nil {
			l.end(ts)
		}
		l.proposed = true
		return c.rep.hold(c.sess.id), true
	case !l.sessions.mayAsk(c.sess.id, c.ep) && mayNot(c, l, op):
		return c.moved(op, l), true
	case op == OpSync && c.ep != l.leader && l.proposed:
		// A leader answers a forwarded sync behind its outstanding proposals.
		return c.rep.hold(c.sess.id), true
	}
	return result{}, false
}

// mayNot reports whether a leader refuses op on a connection that its session has left for another
// endpoint. A follower answers reads without asking the leader, and forwards a sync of any session.
func mayNot(c *conn, l *leadership, op OpCode) bool {
	return op != OpCloseSession && (op.IsWrite() || c.ep == l.leader)
}

// moved ends the connection without an answer. A write still takes a zxid if there is a leader that
// commits.
func (c *conn) moved(op OpCode, l *leadership) result {
	s := c.s
	if op.IsWrite() && l != nil && l == s.en.current {
		s.failWrite()
	}
	return result{silent: true, hangUp: true}
}

// lacksSASL reports whether c must authenticate by SASL before the server accepts op.
func (c *conn) lacksSASL(op OpCode) bool {
	return c.s.cfg.RequireSASL && op != OpSASL && !c.hasScheme("sasl")
}

// knows reports whether the server accepts op in a request header.
func (s *Server) knows(op OpCode) bool {
	return op.Known() && op != OpConnect && op != OpWatchEvent && !s.unknown[op]
}

// treeOf returns the tree that the reads of c see.
func (c *conn) treeOf() *tree.Tree {
	s := c.s
	if v := c.rep.view; v != nil {
		return v.tree
	}
	return s.data.Tree
}

// refuseClosing answers a request of a session whose end the leader has begun.
func (c *conn) refuseClosing(r *jute.Request) result {
	s := c.s
	if !r.Op.IsWrite() {
		return result{code: ErrSessionExpired, zxid: s.en.zxidOf(c.rep)}
	}
	zxid := s.failWrite()
	if r.Op != OpMulti {
		return result{code: ErrSessionExpired, zxid: zxid}
	}
	for i := range r.Subs {
		r.Subs[i].Code = ErrRuntimeInconsistency
		if i == 0 {
			r.Subs[i].Code = ErrSessionExpired
		}
		c.reply = jute.AppendMultiError(c.reply, r.Subs[i].Code)
	}
	c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
	return result{zxid: zxid}
}

// failWrite is the transaction of a write that fails: it takes a zxid, which it returns.
func (s *Server) failWrite() int64 {
	t := s.data.Begin(nil, 0, false)
	s.fire(t)
	return t.Zxid
}
