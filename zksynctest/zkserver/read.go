package zkserver

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// read executes an operation that looks at one znode. The watch is left in the
// same moment as the answer is taken.
func (s *Server) read(c *conn, r *jute.Request) Code {
	if r.Op == OpExists {
		return s.exists(c, r)
	}
	if r.Null {
		return ErrMarshalling
	}
	n := s.treeOf(c).nodes[r.Path]
	if n == nil {
		return ErrNoNode
	}
	need := int32(jute.PermRead)
	if r.Op == OpGetACL {
		need |= jute.PermAdmin
	}
	if !allowed(n.acl(), need, c.ids) {
		return ErrNoAuth
	}
	switch r.Op {
	case OpGetData:
		c.reply = n.appendStat(jute.AppendBuffer(c.reply, n.data))
		if r.Watch {
			s.arm(c, dataWatch, r.Path, oneShot)
		}
	case OpGetChildren, OpGetChildren2:
		c.reply = n.appendChildren(c.reply)
		if r.Op == OpGetChildren2 {
			c.reply = n.appendStat(c.reply)
		}
		if r.Watch {
			s.arm(c, childWatch, r.Path, oneShot)
		}
	case OpGetAllChildrenNumber:
		number := n.descendants()
		if r.Path == "" {
			number++ // by this alias the root counts as one of its own
		}
		c.reply = jute.AppendInt32(c.reply, int32(number))
	case OpGetACL:
		list := n.acl()
		if !allowed(list, jute.PermAdmin, c.ids) {
			list = maskedACL(list)
		}
		c.reply = n.appendStat(jute.AppendACLs(c.reply, list))
	}
	return jute.OK
}

func (s *Server) exists(c *conn, r *jute.Request) Code {
	if r.Null {
		return ErrMarshalling
	}
	if strings.IndexByte(r.Path, 0) >= 0 {
		return ErrBadArguments
	}
	n := s.treeOf(c).nodes[r.Path]
	if n != nil && !s.cfg.Compat38 && !allowed(n.acl(), jute.PermRead, c.ids) {
		return ErrNoAuth
	}
	if r.Watch {
		s.arm(c, dataWatch, r.Path, oneShot)
	}
	if n == nil {
		return ErrNoNode
	}
	c.reply = n.appendStat(c.reply)
	return jute.OK
}

// multiRead answers each of its reads on its own, up to one of nothing.
func (s *Server) multiRead(c *conn, r *jute.Request) (code Code) {
	for i := range r.Subs {
		if limit := s.cfg.MaxAnswer; limit > 0 && len(c.reply) > limit+4 {
			return jute.OK // execute says what becomes of it
		}
		sub := &r.Subs[i]
		start := len(c.reply)
		c.reply = jute.AppendMultiHeader(c.reply, sub.Op, false, jute.OK)
		sub.Watch = false // a real server forgets it while it reads the list
		sub.Code = s.read(c, sub)
		if sub.Null {
			c.reply, code = c.reply[:start], sub.Code
			break
		}
		if sub.Code != jute.OK {
			c.reply = jute.AppendMultiError(c.reply[:start], sub.Code)
		}
	}
	c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
	return code
}
