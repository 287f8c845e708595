package zkserver

import "time"

// perform executes a request of a connection with a session, and leaves the record
// of the answer in c.reply.
func (s *Server) perform(c *conn, r *request) result {
	toLeader := r.op.needsLeader()
	switch {
	case c.sess.local:
		c.heard = time.Now()
		if toLeader {
			return s.refuseWrite(c, r)
		}
	case c.rep.cut:
		if toLeader || c.owes && r.op != OpAuth {
			c.owes = true
			return result{silent: true}
		}
	case c.sess.dead:
		if toLeader {
			s.catchUpFor(c) // and it hears that it is
		}
		if c.rep.view == nil {
			return result{silent: true}
		}
	case c.sess.conn != c && c.mayNot(r.op):
		return s.moved(r.op)
	case toLeader:
		s.catchUpFor(c)
	}
	now := time.Now()
	s.en.hear(c, now)
	if !s.knows(r.op) {
		return result{code: ErrUnimplemented, zxid: noZxid, hangUp: true}
	}
	for i := range r.subs {
		r.bad = r.bad || !s.knows(r.subs[i].op)
	}
	if r.op == OpAuth {
		return s.authenticate(c, r)
	}
	if r.op.isWrite() {
		return s.write(c, r, now)
	}
	if r.op == OpSASL && (r.bad || r.null) {
		return result{silent: true, hangUp: true}
	}
	if r.bad {
		if r.hollow {
			c.reply = appendMultiHeader(c.reply, opError, true, -1)
		}
		return result{code: ErrMarshalling, zxid: s.en.zxidOf(c.rep), whole: r.hollow}
	}
	res := result{}
	switch r.op {
	case OpPing:
	case OpSync:
		if r.null {
			c.reply = appendBuffer(c.reply, nil)
		} else {
			c.reply = appendString(c.reply, r.path)
		}
	case OpSASL:
		c.reply = appendBuffer(c.reply, nil)
		return res // outside of the pipeline that stamps replies with a zxid
	case OpSetWatches, OpSetWatches2:
		s.setWatches(c, r)
	case OpAddWatch:
		res.code = s.addWatch(c, r)
	case OpCheckWatches:
		res.code = s.checkWatches(c, r)
	case OpRemoveWatches:
		res.code = s.removeWatches(c, r)
	case OpGetEphemerals:
		s.getEphemerals(c, r)
	case OpWhoAmI:
		c.whoAmI()
	case OpMultiRead:
		res.code, res.whole = s.multiRead(c, r), true
	default:
		res.code = s.read(c, r)
	}
	res.zxid = s.en.zxidOf(c.rep)
	return res
}

// mayNot tells whether the leader refuses op on a connection that its session has
// left for another endpoint. A follower answers reads without asking.
func (c *conn) mayNot(op OpCode) bool {
	return op != OpCloseSession && (op.isWrite() || c.ep == c.s.en.leader)
}

// moved ends the connection without an answer. A write has had its zxid all the same.
func (s *Server) moved(op OpCode) result {
	if op.isWrite() {
		s.begin(nil, 0, false)
	}
	return result{silent: true, hangUp: true}
}

// knows tells whether op may stand in a request to this server.
func (s *Server) knows(op OpCode) bool {
	_, known := opNames[op]
	return known && op != OpConnect && op != OpWatchEvent && !s.unknown[op]
}

// treeOf is what the reads of c see.
func (s *Server) treeOf(c *conn) *tree {
	if v := c.rep.view; v != nil {
		return v.tree
	}
	return s.tree
}
