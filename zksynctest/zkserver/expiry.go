package zkserver

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// touch moves the session to the bucket in which it expires unless it is heard of
// again: the multiple of the tick that comes after its timeout.
func (s *Server) touch(sess *session, now time.Time) {
	tick := s.cfg.TickTime.Milliseconds()
	bucket := ((s.elapsed(now)+sess.timeout.Milliseconds())/tick + 1) * tick
	if bucket == sess.bucket {
		return
	}
	s.untrack(sess)
	sess.bucket = bucket
	set := s.buckets[bucket]
	if set == nil {
		set = map[int64]*session{}
		s.buckets[bucket] = set
	}
	set[sess.id] = sess
	if s.due == 0 || bucket < s.due {
		s.setTimer()
	}
}

func (s *Server) untrack(sess *session) {
	set := s.buckets[sess.bucket]
	delete(set, sess.id)
	if len(set) == 0 {
		delete(s.buckets, sess.bucket)
	}
	sess.bucket = 0
	if len(s.sessions) == 0 {
		s.setTimer()
	}
}

// setTimer sets the one timer for what comes next, if anything does.
func (s *Server) setTimer() {
	s.timer.stop()
	s.timer, s.due = nil, 0
	if !s.en.active() {
		return
	}
	for bucket := range s.buckets {
		if s.due == 0 || bucket < s.due {
			s.due = bucket
		}
	}
	for _, l := range s.leftovers {
		if s.due == 0 || l.due < s.due {
			s.due = l.due
		}
	}
	if s.reapDue != 0 && (s.due == 0 || s.reapDue < s.due) {
		s.due = s.reapDue
	}
	if s.due == 0 {
		return
	}
	wait := time.Duration(max(s.due, s.notBefore))*time.Millisecond - time.Since(s.base)
	s.timer = s.afterFunc(max(wait, 0), s.onTimer)
}

func (s *Server) onTimer() {
	s.doWhatIsDue()
	_ = s.persist() // if that fails the server goes down, and says why
}

// doWhatIsDue expires whole buckets, and removes ephemerals that were left for a
// while and what is to be reaped.
func (s *Server) doWhatIsDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at := s.elapsed(now)
	if !s.en.active() {
		return
	}
	if at >= s.notBefore {
		for _, bucket := range slices.Sorted(maps.Keys(s.buckets)) {
			if bucket > at {
				break
			}
			for _, id := range slices.Sorted(maps.Keys(s.buckets[bucket])) {
				s.endSession(s.sessions[id], nil, now)
			}
		}
		s.removeLeftovers(at, now)
		if s.reapDue != 0 && s.reapDue <= at {
			s.runReaper(now)
		}
	}
	s.setTimer()
}

func (s *Server) removeLeftovers(at int64, now time.Time) {
	slices.SortStableFunc(s.leftovers, func(a, b leftover) int { return cmp.Compare(a.due, b.due) })
	for len(s.leftovers) > 0 && s.leftovers[0].due <= at {
		session := s.leftovers[0].session
		s.leftovers = s.leftovers[1:]
		s.removeEphemerals(s.begin(superUser, now.UnixMilli(), false), session)
	}
}
