package zkserver

import (
	"slices"
	"time"
)

// write executes an operation that takes a zxid, and fires the watches it trips
// before its answer is queued.
func (s *Server) write(c *conn, r *request, now time.Time) result {
	if r.op == OpCloseSession {
		s.endSession(c.sess, c, now)
		return result{zxid: s.zxid, hangUp: true}
	}
	if r.bad && r.op == OpReconfig {
		return result{code: ErrMarshalling, zxid: s.en.zxidOf(c.rep)} // of all writes, it is read before it counts
	}
	if r.op == OpMulti && slices.ContainsFunc(r.subs, func(sub request) bool { return sub.null }) {
		// A real server falls over it after it has taken the zxid, and answers an
		// error with the record of an empty multi.
		s.wasted++
		c.reply = appendMultiHeader(c.reply, opError, true, -1)
		return result{code: ErrMarshalling, zxid: s.zxid, whole: true}
	}
	t := s.begin(c.ids, now.UnixMilli(), r.op == OpMulti)
	res := result{zxid: t.zxid}
	switch {
	case r.bad:
		res.code = ErrMarshalling
	case r.op == OpMulti:
		res.code = s.multi(c, t, r)
	case r.op == OpReconfig:
		res.code = ErrReconfigDisabled
		if s.cfg.Reconfig {
			res.code = ErrUnimplemented
		}
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
		if r.null {
			return ErrMarshalling
		}
		return t.delete(r.path, r.version)
	case OpDeleteContainer:
		return ErrBadArguments // only the server itself can name one
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
// not by the header of the reply; but one that makes no sense fails the request.
func (s *Server) multi(c *conn, t *txn, r *request) Code {
	start, failed := len(c.reply), -1
	for i := range r.subs {
		sub := &r.subs[i]
		answer := sub.op
		if sub.code = sub.asInMulti(&answer); sub.code == codeOK {
			if s.cfg.Compat38 && sub.op == OpCreate2 {
				sub.op, answer = OpCreate, OpCreate
			}
			c.reply = appendMultiHeader(c.reply, answer, false, codeOK)
			sub.code = s.writeOne(c, t, sub)
		}
		if sub.code == ErrMarshalling {
			t.rollBack()
			return ErrMarshalling
		}
		if sub.code != codeOK {
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
	return codeOK
}

// asInMulti makes of a create what its flags say: within a multi they count, and
// not the operation. It sets the type of the result too.
func (r *request) asInMulti(answer *OpCode) Code {
	switch r.op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
	default:
		return codeOK
	}
	switch {
	case r.flags == flagTTL || r.flags == flagTTLSequential:
		if r.op != OpCreateTTL {
			return ErrMarshalling // it has no ttl
		}
		*answer = OpCreate2
		return codeOK
	case r.flags == flagContainer:
		r.op, *answer = OpCreateContainer, OpCreate2
	case r.op != OpCreate2:
		r.op, *answer = OpCreate, OpCreate
	}
	r.ttl = -1
	return codeOK
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
