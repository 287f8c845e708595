package zkserver

import "time"

// perform executes a request of a connection with a session, and leaves the record
// of the answer in c.reply.
func (s *Server) perform(c *conn, r *request) result {
	toLeader := r.op.isWrite() || r.op == OpSync
	switch {
	case c.cut && (toLeader || c.owes && r.op != OpPing && r.op != OpAuth):
		c.owes = true
		return result{silent: true}
	case c.sess.dead && !c.cut:
		return result{silent: true}
	}
	now := time.Now()
	s.hear(c, now)
	if toLeader && c.view != nil {
		s.catchUp(c.sess.id)
	}
	if !s.knows(r.op) || r.persist {
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
	if r.bad {
		return result{code: ErrMarshalling, zxid: s.seenZxid(c)}
	}
	res := result{}
	switch r.op {
	case OpPing:
	case OpSync:
		c.reply = appendString(c.reply, r.path)
	case OpSASL:
		c.reply = appendBuffer(c.reply, nil)
		return res // outside of the pipeline that stamps replies with a zxid
	case OpSetWatches, OpSetWatches2:
		s.setWatches(c, r)
	case OpRemoveWatches:
		res.code = s.removeWatches(c, r)
	case OpMultiRead:
		s.multiRead(c, r)
	default:
		res.code = s.read(c, r)
	}
	res.zxid = s.seenZxid(c)
	return res
}

// hear touches the session of c, unless nobody who counts hears of it.
func (s *Server) hear(c *conn, now time.Time) {
	if !c.cut && !c.sess.dead {
		s.touch(c.sess, now)
	}
}

// knows tells whether op may stand in a request to this server.
func (s *Server) knows(op OpCode) bool {
	_, known := opNames[op]
	return known && op != OpConnect && !s.unknown[op]
}

// seenZxid is the latest transaction that c can know of.
func (s *Server) seenZxid(c *conn) int64 {
	if c.view != nil {
		return c.view.zxid
	}
	return s.zxid
}

// treeOf is what the reads of c see.
func (s *Server) treeOf(c *conn) *tree {
	if c.view != nil {
		return c.view.tree
	}
	return s.tree
}

// setWatches arms the watches of a client that comes back, and fires those that
// missed something. Paths are taken as they are.
func (s *Server) setWatches(c *conn, r *request) {
	t := s.treeOf(c)
	for kind, paths := range r.rearm {
		for _, path := range paths {
			s.rearm(c, t, rearmKind(kind), path, r.relZxid)
		}
	}
}

// The kinds of watch that removeWatches can name.
const (
	removeChildren            = 1
	removeData                = 2
	removeAny                 = 3
	removePersistent          = 4
	removePersistentRecursive = 5
)

func (s *Server) removeWatches(c *conn, r *request) Code {
	removed := false
	switch r.kind {
	case removeChildren:
		removed = s.disarm(c, childWatch, r.path)
	case removeData:
		removed = s.disarm(c, dataWatch, r.path)
	case removeAny:
		data, child := s.disarm(c, dataWatch, r.path), s.disarm(c, childWatch, r.path)
		removed = data || child
	case removePersistent, removePersistentRecursive:
	default:
		return ErrMarshalling
	}
	if !removed {
		return ErrNoWatcher
	}
	return codeOK
}
