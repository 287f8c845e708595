package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// forwardAndCutOff has the leader carry out a request, and cuts the server of c off
// from the leader first: nothing of what happens there comes back, and the touch that
// goes with the request is lost with the other touches that the follower has not
// reported. At the leader itself the others have its proposal, which the next leader
// commits.
func (c *conn) forwardAndCutOff(r *jute.Request) result {
	s := c.s
	l := c.leadership()
	s.en.cutOffServer(c)
	res := c.rep.hold(c.sess.id)
	switch {
	case r.Op == OpSync || c.sess.dead:
	case r.Op != OpCloseSession && l.sessions.find(c.sess.id) == nil,
		!l.sessions.mayAsk(c.sess.id, c.ep) && mayNot(c, l, r.Op):
		s.data.Begin(nil, 0, false) // it fails, and takes a zxid
	default:
		done := c.performWrite(r, time.Now())
		res.code, res.zxid, res.lost = done.code, done.zxid, true
	}
	return res
}

// cutOffServer cuts the server of c off from its leader: its endpoint, or c alone if
// there is one endpoint only.
func (en *ensemble) cutOffServer(c *conn) {
	if len(en.endpoints) == 1 {
		en.isolate(c)
		return
	}
	en.relink(func() { c.ep.apart = true })
}

// isolate cuts c off from its leader while its endpoint goes on.
func (en *ensemble) isolate(c *conn) {
	r := en.ownReplica(c)
	en.fallBehind(r)
	r.alone, r.cut, r.asleep = true, true, false
	if sess := c.sess; sess != nil {
		delete(c.ep.touches, sess.id)
		sess.conn = nil
	}
}
