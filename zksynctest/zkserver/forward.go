package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// forwards reports whether the server of c passes op to its leader, and does not answer or refuse it
// alone.
func (c *conn) forwards(op OpCode) bool {
	return op.NeedsLeader() && c.commits() && !c.sess.local && c.s.knows(op) && !c.lacksSASL(op)
}

// forwardAndCutOff cuts the server of c off from its leader and has the leader carry out the
// request. No answer or change comes back, and the follower loses all touches that it has not
// reported, including the touch of this request. If the server of c leads, the other endpoints have
// its proposal, and the next leader commits the proposal.
func (c *conn) forwardAndCutOff(r *jute.Request) result {
	s := c.s
	l := c.leadership()
	s.en.cutOffServer(c)
	res := c.rep.hold(c.sess.id)
	switch {
	case r.Op == OpSync || c.sess.dead:
	case r.Op != OpCloseSession && l.sessions.find(c.sess.id) == nil,
		!l.sessions.mayAsk(c.sess.id, c.ep) && mayNot(c, l, r.Op):
		s.failWrite()
	default:
		done := c.performWrite(r, time.Now())
		res.code, res.zxid, res.lost = done.code, done.zxid, true
	}
	return res
}

// cutOffServer cuts the server of c off from its leader: the endpoint of c, or c alone if there is
// only one endpoint.
func (en *ensemble) cutOffServer(c *conn) {
	if len(en.endpoints) == 1 {
		en.isolate(c)
		return
	}
	en.relink(func() { c.ep.apart = true })
}

// isolate cuts c off from its leader and leaves the endpoint in the ensemble.
func (en *ensemble) isolate(c *conn) {
	r := en.ownReplica(c)
	en.fallBehind(r)
	r.alone, r.cut, r.asleep = true, true, false
	if sess := c.sess; sess != nil {
		delete(c.ep.touches, sess.id)
		sess.conn = nil
	}
}
