package zkserver

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// performRead executes an operation that reads one znode. It adds the watch and takes the answer
// atomically.
func (c *conn) performRead(r *jute.Request) Code {
	if r.Op == OpExists {
		return c.exists(r)
	}
	if r.Null {
		return ErrMarshalling
	}
	n := c.treeOf().Node(r.Path)
	if n == nil {
		return ErrNoNode
	}
	need := int32(jute.PermRead)
	if r.Op == OpGetACL {
		need |= jute.PermAdmin
	}
	if !tree.Allowed(n.ACL(), need, c.client.IDs) {
		return ErrNoAuth
	}
	switch r.Op {
	case OpGetData:
		c.reply = n.AppendStat(jute.AppendBuffer(c.reply, n.Data))
		if r.Watch {
			c.rep.watches.Arm(&c.client, tree.DataWatch, r.Path, tree.OneShot)
		}
	case OpGetChildren, OpGetChildren2:
		c.reply = n.AppendChildren(c.reply)
		if r.Op == OpGetChildren2 {
			c.reply = n.AppendStat(c.reply)
		}
		if r.Watch {
			c.rep.watches.Arm(&c.client, tree.ChildWatch, r.Path, tree.OneShot)
		}
	case OpGetAllChildrenNumber:
		number := n.Descendants()
		if r.Path == "" {
			number++ // for this alias of the root the count includes the root
		}
		c.reply = jute.AppendInt32(c.reply, int32(number))
	case OpGetACL:
		list := n.ACL()
		if !tree.Allowed(list, jute.PermAdmin, c.client.IDs) {
			list = tree.MaskedACL(list)
		}
		c.reply = n.AppendStat(jute.AppendACLs(c.reply, list))
	}
	return jute.OK
}

func (c *conn) exists(r *jute.Request) Code {
	s := c.s
	if r.Null {
		return ErrMarshalling
	}
	if strings.IndexByte(r.Path, 0) >= 0 {
		return ErrBadArguments
	}
	n := c.treeOf().Node(r.Path)
	if n != nil && !s.cfg.Compat38 && !tree.Allowed(n.ACL(), jute.PermRead, c.client.IDs) {
		return ErrNoAuth
	}
	if r.Watch {
		c.rep.watches.Arm(&c.client, tree.DataWatch, r.Path, tree.OneShot)
	}
	if n == nil {
		return ErrNoNode
	}
	c.reply = n.AppendStat(c.reply)
	return jute.OK
}

// multiRead answers each of its reads separately, also an empty list of reads.
func (c *conn) multiRead(r *jute.Request) (code Code) {
	s := c.s
	for i := range r.Subs {
		if limit := s.cfg.MaxAnswer; limit > 0 && len(c.reply) > limit+4 {
			return jute.OK // execute handles the oversized answer
		}
		sub := &r.Subs[i]
		start := len(c.reply)
		c.reply = jute.AppendMultiHeader(c.reply, sub.Op, false, jute.OK)
		sub.Watch = false // a real server drops the watch flag when it decodes the list
		sub.Code = c.performRead(sub)
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
