package zkserver

// Lag freezes the view of the tree that a session reads and watches, as if the session were
// connected to its own stale follower. The lag ends when a sync or a write of the session is
// processed, with [Server.CatchUp], or with the session; a reconnect does not end it. When the
// session catches up, its watches fire for the missed changes in their order. A session whose
// endpoint is cut off from its leader does not lag: it sees no new changes until it connects to
// another endpoint. A session without a connection lags like a client of the first endpoint: a cut of
// that endpoint ends the lag. [Endpoint.Lag] affects all clients of one endpoint.
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

// CatchUp ends the lag that [Server.Lag] began.
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
	switch ep := r.ep.rep; {
	case r.cut:
	case ep.view != nil && !ep.asleep && r.ep.thaw == nil:
		s.en.catchUpTo(r, ep.view) // the endpoint lags
	default:
		s.en.awaken(r)
	}
	s.en.discard(r)
}

// catchUpFor ends the lag of c, because a request of c has reached the leader.
func (c *conn) catchUpFor() {
	if c.s.en.lagging[c.sess.id] == c.rep {
		c.s.endLag(c.sess.id)
	}
	c.s.en.endLagAt(c.ep)
}

// endLagAt ends the lag of e, but not the lag of single sessions that [Server.Lag] began.
func (en *ensemble) endLagAt(e *Endpoint) {
	for _, r := range en.replicas {
		if r.ep == e && r.view != nil && !r.cut && !en.lagsAlone(r) {
			en.awaken(r)
		}
	}
}

// lagsAlone reports whether r belongs to a session that [Server.Lag] affects.
func (en *ensemble) lagsAlone(r *replica) bool {
	for _, lag := range en.lagging {
		if lag == r {
			return true
		}
	}
	return false
}

// CutFromLeader cuts the session's endpoint off from its leader for this session only, or ends the
// cut. While the session is cut off, pings and reads are answered from the tree as of the cut.
// Syncs and writes get no answer, and neither do later requests, because answers come in order. The
// leader hears nothing of the session, so the session expires there while its connection stays open
// and still answers. Ending the cut closes the connection. A new connection of the session reaches
// an endpoint that is not cut off. CutFromLeader has no effect on a session without a connection.
// [Endpoint.CutFromLeader] affects all clients of one endpoint.
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
