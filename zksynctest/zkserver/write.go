package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// performWrite executes an operation that takes a zxid, and fires the triggered watches before its
// answer is queued.
func (c *conn) performWrite(r *jute.Request, now time.Time) result {
	s := c.s
	if r.Op == OpCloseSession {
		// The events of the session's own ephemerals are queued ahead of the answer.
		s.endSession(c.sess, c, now)
		return result{zxid: s.data.Zxid, hangUp: true}
	}
	if r.Bad && r.Op == OpReconfig {
		return result{code: ErrMarshalling, zxid: s.en.zxidOf(c.rep)} // reconfig is the only write that is decoded before it takes a zxid
	}
	if r.Op == OpMulti && slices.ContainsFunc(r.Subs, func(sub jute.Request) bool { return sub.Null }) {
		// A real server fails on a null operation after it has taken the zxid, and answers an error
		// with the record of an empty multi.
		s.data.Waste()
		c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
		return result{code: ErrMarshalling, zxid: s.data.Zxid, whole: true}
	}
	t := s.data.Begin(c.client.IDs, now.UnixMilli(), r.Op == OpMulti)
	res := result{zxid: t.Zxid}
	switch {
	case r.Bad:
		// The request takes a zxid before it is decoded.
		res.code = ErrMarshalling
	case r.Op == OpMulti:
		res.code = c.multi(t, r)
	case r.Op == OpReconfig:
		res.code = ErrReconfigDisabled
		if s.cfg.Reconfig {
			res.code = ErrUnimplemented
		}
	default:
		res.code = c.writeOne(t, r)
	}
	s.fire(t)
	return res
}

func (c *conn) writeOne(t *tree.Txn, r *jute.Request) Code {
	switch r.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		path, n, code := t.Create(r, c.sess.id)
		if code != jute.OK {
			return code
		}
		c.reply = jute.AppendString(c.reply, path)
		if r.Op != OpCreate {
			c.reply = n.AppendStat(c.reply)
		}
	case OpDelete:
		if r.Null {
			return ErrMarshalling
		}
		return t.Delete(r.Path, r.Version)
	case OpDeleteContainer:
		return ErrBadArguments // only the server itself can use a valid deleteContainer
	case OpSetData:
		n, code := t.SetData(r.Path, r.Data, r.Version)
		if code != jute.OK {
			return code
		}
		c.reply = n.AppendStat(c.reply)
	case OpSetACL:
		n, code := t.SetACL(r.Path, r.ACL, r.Version)
		if code != jute.OK {
			return code
		}
		c.reply = n.AppendStat(c.reply)
	case OpCheck:
		n, code := t.Check(r.Path, r.Version)
		if code != jute.OK {
			return code
		}
		// In a multi a check has no answer. A single check has no sensible answer in a real server
		// either; this server answers the Stat that was probably intended.
		if !t.Multi {
			c.reply = n.AppendStat(c.reply)
		}
	}
	return jute.OK
}

// multi applies all its operations or none. The results report a failed operation; the header of
// the reply reports success. A malformed operation fails the whole request.
func (c *conn) multi(t *tree.Txn, r *jute.Request) Code {
	s := c.s
	start, failed := len(c.reply), -1
	for i := range r.Subs {
		sub := &r.Subs[i]
		answer := sub.Op
		if sub.Code = sub.AsInMulti(&answer); sub.Code == jute.OK {
			// ZOOKEEPER-4026: 3.8.0 answers a create2 within a multi as a create.
			if s.cfg.Compat38 && sub.Op == OpCreate2 {
				sub.Op, answer = OpCreate, OpCreate
			}
			c.reply = jute.AppendMultiHeader(c.reply, answer, false, jute.OK)
			sub.Code = c.writeOne(t, sub)
		}
		if sub.Code == ErrMarshalling {
			t.RollBack()
			return ErrMarshalling
		}
		if sub.Code != jute.OK {
			failed = i
			break
		}
	}
	if failed >= 0 {
		t.RollBack()
		c.reply = c.reply[:start]
		for i := range r.Subs {
			sub := &r.Subs[i]
			if i > failed {
				sub.Code = ErrRuntimeInconsistency
			}
			c.reply = jute.AppendMultiError(c.reply, sub.Code)
		}
	}
	c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
	return jute.OK
}
