package zkserver

import (
	"maps"
	"slices"
	"strings"
)

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
	armed := c.watches
	c.watches = [2]map[string]watchMode{}
	c.view = nil
	for kind := range armed {
		for _, path := range watchPaths(armed[kind]) {
			s.catchUpWatch(c, v, watchKind(kind), path, armed[kind][path])
		}
	}
}

// catchUpWatch arms a watch in the tree as it is, and fires it for what v missed.
func (s *Server) catchUpWatch(c *conn, v *view, kind watchKind, path string, modes watchMode) {
	if modes == oneShot {
		want := rearmExist
		switch {
		case kind == childWatch:
			want = rearmChild
		case v.tree.nodes[path] != nil:
			want = rearmData
		}
		s.rearm(c, s.tree, want, path, v.zxid)
		return
	}
	told := s.missed(c, v, kind, path)
	if told {
		modes &^= oneShot
	}
	if modes&recursive != 0 {
		prefix := strings.TrimSuffix(path, "/") + "/"
		below := map[string]struct{}{}
		for _, t := range []*tree{v.tree, s.tree} {
			for p := range t.nodes {
				if strings.HasPrefix(p, prefix) && p != path {
					below[p] = struct{}{}
				}
			}
		}
		for _, p := range slices.Sorted(maps.Keys(below)) {
			s.missed(c, v, dataWatch, p)
		}
	}
	s.setModes(c, kind, path, modes)
}

// missed sends a lasting watch what became of one znode since v, as far as that
// can be seen from before and after.
func (s *Server) missed(c *conn, v *view, kind watchKind, path string) bool {
	before, now := v.tree.nodes[path], s.tree.nodes[path]
	same := before != nil && now != nil && before.czxid == now.czxid
	switch {
	case kind == childWatch && same && before.pzxid != now.pzxid:
		s.notify(c, eventChildrenChanged, path, noZxid)
	case kind == childWatch:
		return false
	case same && before.mzxid != now.mzxid:
		s.notify(c, eventDataChanged, path, noZxid)
	case same || before == now: // neither is there
		return false
	default:
		if before != nil {
			s.notify(c, eventDeleted, path, noZxid)
		}
		if now != nil {
			s.notify(c, eventCreated, path, noZxid)
		}
	}
	return true
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
