package zkserver

import (
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// ReapNow deletes the containers and TTL nodes that are due, and returns their number. The server
// does the same at every [Config.ReapInterval]. A container is due when it has had children and has
// none now; a TTL node is due when it has no children and its data is older than its TTL. Each
// deletion is a transaction of its own. A parent that becomes empty by a deletion waits for the
// next time.
func (s *Server) ReapNow() int {
	s.mu.Lock()
	if s.closed || s.en.current == nil {
		s.mu.Unlock()
		return 0
	}
	n := s.reap(time.Now())
	s.mu.Unlock()
	_ = s.persist() // if persist fails, it stops the server, and Serve and Close return the error
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

// reapLater plans a run of the reaper, at a multiple of its interval, for the time at which n is
// due. There is no timer for a znode that cannot become due without a change.
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

// runReaper is the action of the reaper's timer.
func (s *Server) runReaper(now time.Time) {
	s.agenda.reapDue = 0
	s.reap(now)
	s.planReaper(now)
}

// planReaper plans the reaper for all containers and TTL nodes.
func (s *Server) planReaper(now time.Time) {
	for n := range s.data.Tree.Mortal() {
		s.reapLater(n, now)
	}
}
