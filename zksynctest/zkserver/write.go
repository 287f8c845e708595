package zkserver

import "time"

// write executes an operation that takes a zxid, and fires the watches it trips
// before its answer is queued.
func (s *Server) write(c *conn, r *request, now time.Time) result {
	if r.op == OpCloseSession {
		s.endSession(c.sess, now)
		return result{zxid: s.zxid, hangUp: true}
	}
	t := s.begin(c.ids, now.UnixMilli(), r.op == OpMulti)
	res := result{zxid: t.zxid}
	switch {
	case r.bad:
		res.code = ErrMarshalling
	case r.op == OpMulti:
		s.multi(c, t, r)
	case r.op == OpReconfig:
		res.code = ErrReconfigDisabled
	default:
		res.code = s.writeOne(c, t, r)
	}
	s.fire(t)
	return res
}

func (s *Server) writeOne(c *conn, t *txn, r *request) Code {
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		path, n, code := t.create(r, c.sess.id)
		if code != codeOK {
			return code
		}
		c.reply = appendString(c.reply, path)
		if r.op != OpCreate {
			c.reply = n.appendStat(c.reply)
		}
	case OpDelete:
		return t.delete(r.path, r.version)
	case OpSetData:
		n, code := t.setData(r.path, r.data, r.version)
		if code != codeOK {
			return code
		}
		c.reply = n.appendStat(c.reply)
	case OpSetACL:
		n, code := t.setACL(r.path, r.acl, r.version)
		if code != codeOK {
			return code
		}
		c.reply = n.appendStat(c.reply)
	case OpCheck:
		n, code := t.check(r.path, r.version)
		if code != codeOK {
			return code
		}
		// Within a multi a check answers nothing; on its own a real server has no
		// sensible answer, so the Stat it seems to have meant is given.
		if !t.multi {
			c.reply = n.appendStat(c.reply)
		}
	}
	return codeOK
}

// multi applies all its operations or none. A failed one is told by the results,
// not by the header of the reply.
func (s *Server) multi(c *conn, t *txn, r *request) {
	start, failed := len(c.reply), -1
	for i := range r.subs {
		sub := &r.subs[i]
		kind := sub.op
		switch kind {
		case OpCreateContainer, OpCreateTTL:
			kind = OpCreate2
		}
		c.reply = appendMultiHeader(c.reply, kind, false, codeOK)
		if sub.code = s.writeOne(c, t, sub); sub.code != codeOK {
			failed = i
			break
		}
	}
	if failed >= 0 {
		t.rollBack()
		c.reply = c.reply[:start]
		for i := range r.subs {
			sub := &r.subs[i]
			if i > failed {
				sub.code = ErrRuntimeInconsistency
			}
			c.reply = appendMultiError(c.reply, sub.code)
		}
	}
	c.reply = appendMultiHeader(c.reply, opError, true, -1)
}

func appendMultiHeader(b []byte, op OpCode, done bool, code Code) []byte {
	b = appendInt32(b, int32(op))
	b = appendBool(b, done)
	return appendInt32(b, int32(code))
}

func appendMultiError(b []byte, code Code) []byte {
	b = appendMultiHeader(b, opError, false, code)
	return appendInt32(b, int32(code))
}
