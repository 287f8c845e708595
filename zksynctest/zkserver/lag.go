package zkserver

// Lag makes the reads of a session, and its watches, see the tree as it is now,
// as if it were connected to a follower of its own that hears nothing new. It ends
// when a sync or a write of that session is processed, by [Server.CatchUp], or with
// the session; a reconnect does not end it. On catching up, watches fire for what
// was missed, in the order in which it happened. A session whose endpoint is cut off
// from its leader does not lag: it sees nothing new until it comes to another one.
// [Endpoint.Lag] does so to all clients of one endpoint.
func (s *Server) Lag(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLag(id)
	sess := s.sessions.byID[id]
	if sess == nil || sess.conn != nil && sess.conn.rep.cut {
		return
	}
	var r *replica
	if sess.conn != nil {
		r = s.en.ownReplica(sess.conn)
	} else {
		r = s.en.addReplica(s.en.endpoints[0])
	}
	s.en.fallBehind(r)
	r.asleep = false
	s.en.lagging[id] = r
}

// CatchUp ends what [Server.Lag] began.
func (s *Server) CatchUp(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLag(id)
}

func (s *Server) endLag(id int64) {
	r := s.en.lagging[id]
	if r == nil {
		return
	}
	delete(s.en.lagging, id)
	if !r.cut {
		s.en.awaken(r)
	}
	s.en.discard(r)
}

// catchUpFor shows c all that there is, because it asked its leader.
func (c *conn) catchUpFor() {
	s := c.s
	if r := c.rep; s.en.lagging[c.sess.id] == r {
		s.endLag(c.sess.id)
	} else if r.view != nil {
		s.en.catchUp(r)
	}
}

// CutFromLeader cuts the endpoint that the session is connected to off from its
// leader for this one session, or heals that. While cut off, pings and reads are
// answered, from the tree as it was; syncs and writes get no answer, and neither
// does what comes behind them, since answers come in order; and the session is not
// touched, so that it expires on the leader while its connection stays open and
// goes on answering, for as long as it likes. Healing closes the connection. A new
// connection of the session reaches an endpoint that is not cut off. Without a
// connection nothing is cut. [Endpoint.CutFromLeader] does so to all clients of one
// endpoint.
func (s *Server) CutFromLeader(id int64, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !on {
		for _, c := range s.conns.of(id) {
			if c.rep.alone {
				c.hangUp()
			}
		}
		return
	}
	sess := s.sessions.byID[id]
	if sess == nil || sess.conn == nil {
		return
	}
	c := sess.conn
	s.en.isolate(c)
}
