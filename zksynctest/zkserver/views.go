package zkserver

import (
	"maps"
	"slices"
	"time"
)

// SessionInfo is what the server knows about a session.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration // as negotiated over its latest connection
	Connected  bool
	Ephemerals []string // paths, sorted
}

// Sessions lists the sessions that live, by their id.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]SessionInfo, 0, len(s.sessions.byID))
	for _, id := range slices.Sorted(maps.Keys(s.sessions.byID)) {
		sess := s.sessions.byID[id]
		list = append(list, SessionInfo{
			ID:         id,
			Timeout:    sess.negotiated,
			Connected:  len(sess.conns) > 0,
			Ephemerals: s.data.Tree.EphemeralsOf(id),
		})
	}
	return list
}

// Watches is the number of watches on the server.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.conns.open {
		n += c.client.Watching()
	}
	return n
}

// WatchesOf is the number of watches of a session's connections.
func (s *Server) WatchesOf(id int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.conns.open {
		if c.sess != nil && c.sess.id == id {
			n += c.client.Watching()
		}
	}
	return n
}

// Traffic is what a session has cost so far. Sessions that are over are remembered
// for a while.
func (s *Server) Traffic(id int64) Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.sessions.traffic.counts[id]
	if t == nil {
		return Traffic{}
	}
	return Traffic{Requests: t.requests.Load(), BytesIn: t.in.Load(), BytesOut: t.out.Load()}
}

// Zxid is the latest transaction.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Latest()
}

// Dump shows the tree for people: a line for each znode but the server's own below
// /zookeeper, sorted by path.
func (s *Server) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Tree.Dump()
}
