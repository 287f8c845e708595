package zkserver

import "slices"

// view is the tree as a follower that is behind has it.
type view struct {
	tree *tree
	zxid int64
}

func (s *Server) viewNow() *view { return &view{s.tree.snapshot(), s.zxid} }

// detach makes c see v from now on. Its watches wait until it catches up.
func (s *Server) detach(c *conn, v *view) {
	s.unlistAll(c)
	c.view = v
}

// Lag makes the reads of a session, and its watches, see the tree as it is now,
// as if its server were a follower that hears nothing new. It ends when a sync or
// a write of that session is processed, by [Server.CatchUp], or with the session;
// a reconnect does not end it. On catching up, watches that missed something fire
// as they would on setWatches.
func (s *Server) Lag(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp(id)
	sess := s.sessions[id]
	if sess == nil {
		return
	}
	v := s.viewNow()
	s.lagging[id] = v
	if sess.conn != nil {
		s.detach(sess.conn, v)
	}
}

// CatchUp ends what [Server.Lag] began.
func (s *Server) CatchUp(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp(id)
}

func (s *Server) catchUp(id int64) {
	v := s.lagging[id]
	delete(s.lagging, id)
	sess := s.sessions[id]
	if v == nil || sess == nil || sess.conn == nil || sess.conn.view != v {
		return
	}
	c := sess.conn
	data, child := watchPaths(c.watches[dataWatch]), watchPaths(c.watches[childWatch])
	c.watches = [2]map[string]struct{}{}
	c.view = nil
	for _, path := range data {
		kind := rearmExist
		if v.tree.nodes[path] != nil {
			kind = rearmData
		}
		s.rearm(c, s.tree, kind, path, v.zxid)
	}
	for _, path := range child {
		s.rearm(c, s.tree, rearmChild, path, v.zxid)
	}
}

// CutFromLeader cuts the endpoint that the session is connected to off from its
// leader, or heals that. While cut off, pings and reads are answered, from the
// tree as it was; syncs and writes get no answer, and neither do the reads behind
// them, since answers come in order; and the session is not touched, so that it
// expires on the leader while its connection stays open and goes on
// answering. Healing closes the connection. A new connection of the session
// reaches an endpoint that is not cut off. Without a connection nothing is cut.
func (s *Server) CutFromLeader(id int64, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !on {
		for _, c := range s.connsOf(s.cuts, id) {
			s.hangUp(c)
		}
		return
	}
	sess := s.sessions[id]
	if sess == nil || sess.conn == nil {
		return
	}
	c := sess.conn
	if c.view == nil {
		s.detach(c, s.viewNow())
	}
	c.cut = true
	s.cuts[c] = id
	sess.conn = nil
}

func (s *Server) isCut(id int64) bool {
	return slices.ContainsFunc(s.connsOf(s.cuts, id), func(c *conn) bool { return !c.closed })
}
