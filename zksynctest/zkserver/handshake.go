package zkserver

import (
	"bytes"
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

// connect gives the connection a session: a new one, or the one it asks for.
func (s *Server) connect(c *conn, r *request) result {
	q := &r.connect
	quiet := result{silent: true, hangUp: true}
	if r.bad {
		return quiet
	}
	if s.hang {
		c.hung = true
		c.handshake.stop()
		return result{silent: true}
	}
	if s.partitioned[q.sessionID] {
		s.swallow(c, q.sessionID)
		return result{silent: true}
	}
	rep := c.ep.rep
	if lag := s.lagging[q.sessionID]; lag != nil && c.ep.member && !rep.cut {
		rep = lag
	}
	readOnly := s.readsOnly(c.ep)
	switch {
	case !c.ep.member && !(readOnly && q.readOnly):
		return quiet // it does not serve, or not this client
	case q.lastZxid > s.en.zxidOf(rep):
		return quiet // it is behind what the client knows
	}
	timeout := time.Duration(q.timeoutMs) * time.Millisecond
	timeout = min(max(timeout, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
	switch {
	case readOnly:
		return s.connectReadOnly(c, r, timeout)
	case rep.cut:
		// Its leader does not answer, and so neither does it.
		c.hung = true
		c.handshake.stop()
		return result{silent: true}
	}

	now := time.Now()
	var sess *session
	if q.sessionID != 0 {
		// The connection the session had is closed before anything is known about
		// who asks.
		sess = s.sessions[q.sessionID]
		if sess != nil {
			for _, old := range sess.conns {
				if old.ep == c.ep && !old.isCutAlone() {
					s.hangUp(old)
				}
			}
		}
		if sess == nil || !bytes.Equal(q.password, sess.password[:]) {
			c.reply = appendRefusal(c.reply, r)
			return result{code: ErrSessionExpired, zxid: s.en.zxidOf(rep), hangUp: true}
		}
	}
	if sess != nil && !s.swap[sess.id] {
		if sess.timeout != timeout {
			sess.timeout = timeout
			s.log(func(b []byte) []byte { return appendSession(b, sess.id, timeout) })
		}
		s.touch(sess, now)
		if rep != c.rep {
			rep.ep = c.ep
			c.rep = rep
		}
	} else {
		if sess != nil {
			delete(s.swap, sess.id)
		}
		sess = s.openSession(c.ep, timeout, now)
		if c.rep.view != nil {
			s.en.catchUp(c.rep)
		}
	}
	sess.attach(c)
	c.reply = appendConnectResponse(c.reply, r, timeout, sess.id, sess.password, false)
	return result{zxid: s.en.zxidOf(c.rep)}
}
