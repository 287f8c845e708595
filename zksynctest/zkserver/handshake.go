package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// connect gives the connection a new session or the requested session. If cutOff is set, the server
// of c is cut off after it has asked the leader.
func (c *conn) connect(r *jute.Request, cutOff bool) result {
	s := c.s
	q := &r.Connect
	quiet := result{silent: true, hangUp: true}
	// A real server, too, closes the connection without an answer.
	if r.Bad {
		return quiet
	}
	if s.conns.hang {
		c.kept = true
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
		return quiet // the endpoint does not serve, or not this client
	case q.LastZxid > s.en.zxidOf(rep):
		return quiet // the endpoint is behind the zxid that the client has seen
	}
	c.timeout = min(max(time.Duration(q.TimeoutMs)*time.Millisecond, c.ep.minTimeout), c.ep.maxTimeout).Truncate(time.Millisecond)
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
		cutOff = cutOff && !c.leads() // a leader answers without forwarding
	case commits:
		sess = s.openSession(l, c.ep, c.timeout, time.Now())
	case l != nil:
		// The deposed leader proposes the new session, and never commits it.
		l.proposed = true
	}
	if sess == nil || cutOff {
		return c.hang()
	}
	switch {
	case sess.id != q.SessionID:
		// The server has the transaction that created the session, and so all transactions before it.
		s.en.endLagAt(c.ep)
	case sess.id == q.SessionID && rep != c.rep:
		rep.ep = c.ep
		c.rep = rep
	}
	sess.attach(c)
	c.reply = q.AppendResponse(c.reply, c.timeout, sess.id, sess.password, false)
	return result{zxid: s.en.zxidOf(c.rep)}
}

// hang leaves the ConnectRequest of c unanswered.
func (c *conn) hang() result {
	c.hung = true
	c.handshake.stop()
	return result{silent: true}
}

// reopen asks leader l for the session that c resumes. It returns nil if the leader does not have
// the session, or cannot be asked. A deposed leader still has every session of the moment of its
// deposition, except a session whose end it has proposed, and it has no newer session.
func (c *conn) reopen(l *leadership) *session {
	s := c.s
	q := &c.req.Connect
	// A real server closes the session's previous connection before it checks the password of the
	// client.
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
	// The leader learns of the reconnect at once, with the timeout that the client has just
	// negotiated.
	ts.owner = c.ep
	s.planSweep(l, l.sessions.touch(q.SessionID, c.timeout, s.elapsed(now)))
	return ts.sess
}
