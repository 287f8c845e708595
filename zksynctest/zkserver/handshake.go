package zkserver

import (
	"time"
)

// connectRequest is the first record of a connection. Clients older than the
// read-only mode leave out its last byte, and want none in the answer.
type connectRequest struct {
	lastZxid  int64
	timeoutMs int32
	sessionID int64
	password  []byte
	modern    bool
	readOnly  bool // a server without a quorum will do
}

func (q *connectRequest) decode(d *decoder) {
	d.int32() // the version of the protocol has never mattered
	q.lastZxid, q.timeoutMs, q.sessionID, q.password = d.int64(), d.int32(), d.int64(), d.buffer()
	if q.modern = len(d.b) > 0; q.modern {
		q.readOnly = d.bool()
	}
}

func appendConnectResponse(b []byte, q *request, timeout time.Duration, id int64, password [16]byte, readOnly bool) []byte {
	b = appendInt32(b, 0)
	b = appendInt32(b, int32(timeout.Milliseconds()))
	b = appendInt64(b, id)
	b = appendBuffer(b, password[:])
	if q.connect.modern {
		b = appendBool(b, readOnly)
	}
	return b
}

// appendRefusal is the answer to somebody whose session is not there any more, or
// never was.
func appendRefusal(b []byte, r *request) []byte {
	return appendConnectResponse(b, r, 0, 0, [16]byte{}, false)
}

// connect gives the connection a session: a new one, or the one it asks for. With
// cutOff the server of c is cut off from its leader when it has asked the leader.
func (s *Server) connect(c *conn, r *request, cutOff bool) result {
	q := &r.connect
	quiet := result{silent: true, hangUp: true}
	if r.bad {
		return quiet
	}
	if s.hang {
		return c.hang()
	}
	if s.partitioned[q.sessionID] {
		s.swallow(c, q.sessionID)
		return result{silent: true}
	}
	rep := c.ep.rep
	if lag := s.lagging[q.sessionID]; lag != nil && c.ep.in != nil && !rep.cut {
		rep = lag
	}
	readOnly := s.readsOnly(c.ep)
	switch {
	case c.ep.in == nil && !(readOnly && q.readOnly):
		return quiet // it does not serve, or not this client
	case q.lastZxid > s.en.zxidOf(rep):
		return quiet // it is behind what the client knows
	}
	c.timeout = min(max(time.Duration(q.timeoutMs)*time.Millisecond, c.ep.minTimeout), c.ep.maxTimeout)
	if readOnly {
		return s.connectReadOnly(c, r)
	}
	l, commits := c.leadership(), c.commits()
	if cutOff {
		s.en.cutOffServer(c)
	}
	var sess *session
	switch {
	case q.sessionID != 0:
		if sess = s.reopen(c, l); sess == nil && l != nil {
			c.reply = appendRefusal(c.reply, r)
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
	case sess.id != q.sessionID && c.rep.view != nil:
		s.en.catchUp(c.rep)
	case sess.id == q.sessionID && rep != c.rep:
		rep.ep = c.ep
		c.rep = rep
	}
	sess.attach(c)
	c.reply = appendConnectResponse(c.reply, r, c.timeout, sess.id, sess.password, false)
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
func (s *Server) reopen(c *conn, l *leadership) *session {
	q := &c.req.connect
	// The connection the session had here is closed before anything is known about
	// the client that asks.
	if ts := c.ep.in.sessions.tracked[q.sessionID]; ts != nil {
		for _, old := range ts.sess.conns {
			if old.ep == c.ep && !old.rep.alone {
				s.hangUp(old)
			}
		}
	}
	if l == nil {
		return nil
	}
	now := time.Now()
	l.expire(now)
	ts := l.sessions.find(q.sessionID)
	if ts == nil || !ts.sess.admits(q.password) {
		return nil
	}
	if s.swap[q.sessionID] && c.commits() {
		delete(s.swap, q.sessionID)
		return s.openSession(l, c.ep, c.timeout, now)
	}
	// The leader hears of the session at once, and with the timeout that the client
	// has agreed upon just now.
	ts.owner = c.ep
	s.planSweep(l, l.sessions.touch(q.sessionID, c.timeout, s.elapsed(now)))
	return ts.sess
}
