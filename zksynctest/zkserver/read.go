package zkserver

import "strings"

// read executes an operation that looks at one znode. The watch is left in the
// same moment as the answer is taken.
func (s *Server) read(c *conn, r *request) Code {
	if r.op == OpExists {
		return s.exists(c, r)
	}
	if r.null {
		return ErrMarshalling
	}
	n := s.treeOf(c).nodes[r.path]
	if n == nil {
		return ErrNoNode
	}
	need := int32(permRead)
	if r.op == OpGetACL {
		need |= permAdmin
	}
	if !allowed(n.acl(), need, c.ids) {
		return ErrNoAuth
	}
	switch r.op {
	case OpGetData:
		c.reply = n.appendStat(appendBuffer(c.reply, n.data))
		if r.watch {
			s.arm(c, dataWatch, r.path, oneShot)
		}
	case OpGetChildren, OpGetChildren2:
		c.reply = n.appendChildren(c.reply)
		if r.op == OpGetChildren2 {
			c.reply = n.appendStat(c.reply)
		}
		if r.watch {
			s.arm(c, childWatch, r.path, oneShot)
		}
	case OpGetAllChildrenNumber:
		number := n.descendants()
		if r.path == "" {
			number++ // by this alias the root counts as one of its own
		}
		c.reply = appendInt32(c.reply, int32(number))
	case OpGetACL:
		list := n.acl()
		if !allowed(list, permAdmin, c.ids) {
			list = maskedACL(list)
		}
		c.reply = n.appendStat(appendACLs(c.reply, list))
	}
	return codeOK
}

func (s *Server) exists(c *conn, r *request) Code {
	if r.null {
		return ErrMarshalling
	}
	if strings.IndexByte(r.path, 0) >= 0 {
		return ErrBadArguments
	}
	n := s.treeOf(c).nodes[r.path]
	if n != nil && !s.cfg.Compat38 && !allowed(n.acl(), permRead, c.ids) {
		return ErrNoAuth
	}
	if r.watch {
		s.arm(c, dataWatch, r.path, oneShot)
	}
	if n == nil {
		return ErrNoNode
	}
	c.reply = n.appendStat(c.reply)
	return codeOK
}

// multiRead answers each of its reads on its own, up to one of nothing.
func (s *Server) multiRead(c *conn, r *request) (code Code) {
	for i := range r.subs {
		if limit := s.cfg.MaxAnswer; limit > 0 && len(c.reply) > limit+4 {
			return codeOK // execute says what becomes of it
		}
		sub := &r.subs[i]
		start := len(c.reply)
		c.reply = appendMultiHeader(c.reply, sub.op, false, codeOK)
		sub.watch = false // a real server forgets it while it reads the list
		sub.code = s.read(c, sub)
		if sub.null {
			c.reply, code = c.reply[:start], sub.code
			break
		}
		if sub.code != codeOK {
			c.reply = appendMultiError(c.reply[:start], sub.code)
		}
	}
	c.reply = appendMultiHeader(c.reply, opError, true, -1)
	return code
}
