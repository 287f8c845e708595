package zkserver

import (
	"maps"
	"slices"
	"time"
)

// SessionInfo describes a session of the server.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration // as negotiated on the latest connection
	Connected  bool
	Ephemerals []string // paths, sorted
}

// Sessions lists the live sessions in the order of their ids.
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

// Watches returns the number of watches on the server.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.conns.open {
		n += c.client.Watching()
	}
	return n
}

// WatchesOf returns the number of watches of a session's connections.
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

// Traffic returns the traffic of a session so far. The server remembers the traffic of a bounded
// number of ended sessions.
func (s *Server) Traffic(id int64) Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.sessions.traffic.counts[id]
	if t == nil {
		return Traffic{}
	}
	return Traffic{Requests: t.requests.Load(), BytesIn: t.in.Load(), BytesOut: t.out.Load()}
}

// Zxid returns the zxid of the latest transaction.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Latest()
}

// Dump returns the tree as text: one line per znode, sorted by path, without the server's own
// znodes below /zookeeper.
func (s *Server) Dump() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Tree.Dump()
}
