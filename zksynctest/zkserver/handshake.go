package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// connect gives the connection a session: a new one, or the one it asks for. With
// cutOff the server of c is cut off from its leader when it has asked the leader.
func (c *conn) connect(r *jute.Request, cutOff bool) result {
	s := c.s
	q := &r.Connect
	quiet := result{silent: true, hangUp: true}
	if r.Bad {
		return quiet
	}
	if s.conns.hang {
		return c.hang()
	}
	if s.conns.partitioned[q.SessionID] {
		c.swallow(q.SessionID)
		return result{silent: true}
	}
	rep := c.ep.rep
	if lag := s.en.lagging[q.SessionID]; lag != nil && c.ep.in != nil && !rep.cut {
		rep = lag
	}
	readOnly := s.readsOnly(c.ep)
	switch {
	case c.ep.in == nil && !(readOnly && q.ReadOnly):
		return quiet // it does not serve, or not this client
	case q.LastZxid > s.en.zxidOf(rep):
		return quiet // it is behind what the client knows
	}
	c.timeout = min(max(time.Duration(q.TimeoutMs)*time.Millisecond, c.ep.minTimeout), c.ep.maxTimeout)
	if readOnly {
		return c.connectReadOnly(r)
	}
	l, commits := c.leadership(), c.commits()
	if cutOff {
		s.en.cutOffServer(c)
	}
	var sess *session
	switch {
	case q.SessionID != 0:
		if sess = c.reopen(l); sess == nil && l != nil {
			c.reply = q.AppendRefusal(c.reply)
			return result{code: ErrSessionExpired, zxid: s.en.zxidOf(rep), hangUp: true}
		}
		cutOff = cutOff && !c.leads() // the leader answers by itself
	case commits:
		sess = s.openSession(l, c.ep, c.timeout, time.Now())
	case l != nil:
		l.proposed = true
	}
	if sess == nil || cutOff {
		return c.hang()
	}
	switch {
	case sess.id != q.SessionID && c.rep.view != nil:
		s.en.catchUp(c.rep)
	case sess.id == q.SessionID && rep != c.rep:
		rep.ep = c.ep
		c.rep = rep
	}
	sess.attach(c)
	c.reply = q.AppendResponse(c.reply, c.timeout, sess.id, sess.password, false)
	return result{zxid: s.en.zxidOf(c.rep)}
}

// hang leaves the ConnectRequest of c without an answer.
func (c *conn) hang() result {
	c.hung = true
	c.handshake.stop()
	return result{silent: true}
}

// reopen asks leader l for the session that c wants to go on with. It returns nil if
// the leader does not have the session, or cannot be asked. A deposed leader has every
// session that was there when it was deposed, unless it has proposed the session's end
// itself, and no newer one.
func (c *conn) reopen(l *leadership) *session {
	s := c.s
	q := &c.req.Connect
	// The connection the session had here is closed before anything is known about
	// the client that asks.
	if ts := c.ep.in.sessions.tracked[q.SessionID]; ts != nil {
		for _, old := range ts.sess.conns {
			if old.ep == c.ep && !old.rep.alone {
				old.hangUp()
			}
		}
	}
	if l == nil {
		return nil
	}
	now := time.Now()
	l.expire(now)
	ts := l.sessions.find(q.SessionID)
	if ts == nil || !ts.sess.admits(q.Password) {
		return nil
	}
	if s.sessions.swap[q.SessionID] && c.commits() {
		delete(s.sessions.swap, q.SessionID)
		return s.openSession(l, c.ep, c.timeout, now)
	}
	// The leader hears of the session at once, and with the timeout that the client
	// has agreed upon just now.
	ts.owner = c.ep
	s.planSweep(l, l.sessions.touch(q.SessionID, c.timeout, s.elapsed(now)))
	return ts.sess
}
