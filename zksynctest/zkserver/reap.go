package zkserver

import (
	"cmp"
	"maps"
	"slices"
	"time"
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
	var gone []string
	for path := range s.tree.reapable {
		if wait, may := s.reapWait(s.tree.nodes[path], now); may && wait < 0 {
			gone = append(gone, path)
		}
	}
	// Containers come first, and all in a defined order.
	slices.SortFunc(gone, func(a, b string) int {
		ofTTL := func(path string) int {
			if s.tree.nodes[path].owner == ownerContainer {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(ofTTL(a), ofTTL(b)), cmp.Compare(a, b))
	})
	for _, path := range gone {
		t := s.begin(superUser, now.UnixMilli(), false)
		t.remove(path, s.tree.nodes[path])
		s.fire(t)
	}
	return len(gone)
}

// reapWait is for how many milliseconds more n is safe, less than none if it is not;
// and whether its time comes at all, if nobody writes.
func (s *Server) reapWait(n *node, now time.Time) (wait int64, may bool) {
	age := now.UnixMilli() - n.mtime
	switch {
	case len(n.children()) > 0:
		return 0, false
	case n.owner != ownerContainer:
		return n.owner&maxTTL - age, true
	case n.creates > 0:
		return -1, true
	case s.cfg.NeverUsedTTL > 0:
		return s.cfg.NeverUsedTTL.Milliseconds() - age, true
	}
	return 0, false
}

// reapLater sees to it that the reaper runs when the time of n has come, at a
// multiple of its interval. There is no timer for what nothing will become of.
func (s *Server) reapLater(n *node, now time.Time) {
	wait, may := s.reapWait(n, now)
	if !may {
		return
	}
	every := s.cfg.ReapInterval.Milliseconds()
	due := ((s.elapsed(now)+max(wait, 0))/every + 1) * every
	if s.reapDue == 0 || due < s.reapDue {
		s.reapDue = due
		if s.due == 0 || due < s.due {
			s.setTimer()
		}
	}
}

// runReaper is what the timer does when it is time.
func (s *Server) runReaper(now time.Time) {
	s.reapDue = 0
	s.reap(now)
	s.planReaper(now)
}

// planReaper looks at all that may have to go.
func (s *Server) planReaper(now time.Time) {
	for _, path := range slices.Sorted(maps.Keys(s.tree.reapable)) {
		s.reapLater(s.tree.nodes[path], now)
	}
}
