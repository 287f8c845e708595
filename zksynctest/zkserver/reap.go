package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// ReapNow removes the containers and TTL nodes whose time has come, as the server
// does by itself at every [Config.ReapInterval], and returns how many. A container
// goes when it has had children and has none; a TTL node when it has no children
// and its data is older than its ttl. Each goes in a transaction of its own. What
// becomes empty by that has to wait for the next time.
func (s *Server) ReapNow() int {
	s.mu.Lock()
	if s.closed || s.en.current == nil {
		s.mu.Unlock()
		return 0
	}
	n := s.reap(time.Now())
	s.mu.Unlock()
	_ = s.persist() // if that fails the server goes down, and says why
	return n
}

func (s *Server) reap(now time.Time) int {
	gone := s.data.Due(now)
	for _, path := range gone {
		t := s.data.Begin(tree.SuperUser, now.UnixMilli(), false)
		t.RemoveNode(path)
		s.fire(t)
	}
	return len(gone)
}

// reapLater sees to it that the reaper runs when the time of n has come, at a
// multiple of its interval. There is no timer for what nothing will become of.
func (s *Server) reapLater(n *tree.Node, now time.Time) {
	wait, may := s.data.ReapWait(n, now)
	if !may {
		return
	}
	every := s.cfg.ReapInterval.Milliseconds()
	due := ((s.elapsed(now)+max(wait, 0))/every + 1) * every
	if s.agenda.reapDue == 0 || due < s.agenda.reapDue {
		s.agenda.reapDue = due
		if s.agenda.due == 0 || due < s.agenda.due {
			s.setTimer()
		}
	}
}

// runReaper is what the timer does when it is time.
func (s *Server) runReaper(now time.Time) {
	s.agenda.reapDue = 0
	s.reap(now)
	s.planReaper(now)
}

// planReaper looks at all that may have to go.
func (s *Server) planReaper(now time.Time) {
	for n := range s.data.Tree.Mortal() {
		s.reapLater(n, now)
	}
}
