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
}

func (q *connectRequest) decode(d *decoder) {
	d.int32() // the version of the protocol has never mattered
	q.lastZxid, q.timeoutMs, q.sessionID, q.password = d.int64(), d.int32(), d.int64(), d.buffer()
	if q.modern = len(d.b) > 0; q.modern {
		d.bool()
	}
}

func appendConnectResponse(b []byte, q *request, timeout time.Duration, id int64, password [16]byte) []byte {
	b = appendInt32(b, 0)
	b = appendInt32(b, int32(timeout.Milliseconds()))
	b = appendInt64(b, id)
	b = appendBuffer(b, password[:])
	if q.connect.modern {
		b = appendBool(b, false)
	}
	return b
}

// appendRefusal is the answer to somebody whose session is not there any more, or
// never was.
func appendRefusal(b []byte, r *request) []byte {
	return appendConnectResponse(b, r, 0, 0, [16]byte{})
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
	lag := s.lagging[q.sessionID]
	seen := s.zxid
	if lag != nil {
		seen = lag.zxid
	}
	if q.lastZxid > seen {
		return quiet // this server is behind what the client knows
	}

	now := time.Now()
	timeout := time.Duration(q.timeoutMs) * time.Millisecond
	timeout = min(max(timeout, s.cfg.MinSessionTimeout), s.cfg.MaxSessionTimeout)
	var sess *session
	if q.sessionID != 0 {
		// The connection the session had is closed before anything is known about
		// who asks.
		sess = s.sessions[q.sessionID]
		if sess != nil && sess.conn != nil {
			s.hangUp(sess.conn)
		}
		if sess == nil || !bytes.Equal(q.password, sess.password[:]) {
			c.reply = appendRefusal(c.reply, r)
			return result{code: ErrSessionExpired, zxid: s.zxid, hangUp: true}
		}
	}
	if sess != nil && !s.swap[sess.id] {
		sess.timeout = timeout
		s.touch(sess, now)
		c.view = lag
	} else {
		if sess != nil {
			delete(s.swap, sess.id)
		}
		sess = s.openSession(timeout, now)
	}
	c.handshake.stop()
	sess.conn, c.sess = c, sess
	c.traffic.Store(sess.traffic)
	c.reply = appendConnectResponse(c.reply, r, timeout, sess.id, sess.password)
	return result{zxid: s.seenZxid(c)}
}
