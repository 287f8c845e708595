package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// readOnlyAfter is the minimum time that an endpoint looks for a quorum before it serves read-only
// clients.
const readOnlyAfter = 2 * time.Second

// readsOnly reports whether e serves read-only clients without a quorum.
func (s *Server) readsOnly(e *Endpoint) bool {
	return s.cfg.ReadOnlyMode && e.in == nil && len(s.en.endpoints) > 1 &&
		time.Since(e.lost) >= max(readOnlyAfter, s.cfg.TickTime)
}

// connectReadOnly gives a read-only client a local session, which the ensemble does not know. Like a
// real server it closes the connection of a client that asks for a session of the ensemble.
func (c *conn) connectReadOnly(r *jute.Request) result {
	s := c.s
	q := &r.Connect
	id := q.SessionID
	switch {
	case s.sessions.byID[id] != nil:
		return result{silent: true, hangUp: true}
	case id == 0:
		id = c.ep.newID()
	}
	sess := newSession(id, localPassword(s.sessions.secret, id), c.timeout)
	if q.SessionID != 0 && !sess.admits(q.Password) {
		c.reply = q.AppendResponse(c.reply, 0, 0, [16]byte{}, true)
		return result{code: ErrSessionExpired, zxid: s.en.zxidOf(c.rep), hangUp: true}
	}
	sess.local = true
	sess.attach(c)
	c.heard = time.Now()
	c.limitSilence()
	c.reply = q.AppendResponse(c.reply, c.timeout, sess.id, sess.password, true)
	return result{zxid: s.en.zxidOf(c.rep)}
}

// limitSilence closes c at a multiple of handshakeTime, after c was silent for its timeout. No
// leader expires its session.
func (c *conn) limitSilence() {
	s := c.s
	age := time.Since(s.base)
	due := (c.heard.Sub(s.base) + c.timeout) / handshakeTime
	due = max(due, age/handshakeTime) + 1 // retry later if the silence is not over
	c.handshake = s.afterFunc(due*handshakeTime-age, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch now := time.Now(); {
		case c.closed || c.hole.Load():
		case c.ep.thaw != nil || s.elapsed(now) < s.agenda.notBefore || now.Sub(c.heard) <= c.timeout:
			c.limitSilence()
		default:
			c.hangUp()
		}
	})
}

// refuseWrite answers a request of a read-only client that is not a read.
func (c *conn) refuseWrite(op OpCode) result {
	s := c.s
	if op == OpCloseSession {
		return result{zxid: s.en.zxidOf(c.rep), hangUp: true}
	}
	return result{code: ErrNotReadOnly, zxid: s.en.zxidOf(c.rep)}
}
