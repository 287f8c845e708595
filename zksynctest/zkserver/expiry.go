package zkserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// planSweep sets the timer anew if the sessions of a bucket expire before what the
// timer is set for. Only the leader that commits ends sessions.
func (s *Server) planSweep(l *leadership, bucket int64) {
	if l == s.en.current && bucket != 0 && (s.due == 0 || bucket < s.due) {
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
	l := s.en.current
	s.due = l.sessions.next()
	if len(l.sessions.picked) > 0 {
		s.due = max(l.sweepFrom, 1)
	}
	for _, left := range s.leftovers {
		if s.due == 0 || left.due < s.due {
			s.due = left.due
		}
	}
	if s.reapDue != 0 && (s.due == 0 || s.reapDue < s.due) {
		s.due = s.reapDue
	}
	if s.due == 0 {
		return
	}
	wait := time.Duration(max(s.due, l.sweepFrom))*time.Millisecond - time.Since(s.base)
	s.timer = s.afterFunc(max(wait, 0), s.onTimer)
}

func (s *Server) onTimer() {
	s.mu.Lock()
	s.sweep(time.Now())
	s.mu.Unlock()
	_ = s.persist() // if that fails the server goes down, and says why
}

// sweep does what is due: it expires whole buckets of sessions, and removes
// ephemerals that were left for a while and znodes that are to be reaped. The caller
// holds mu.
func (s *Server) sweep(now time.Time) {
	at := s.elapsed(now)
	if !s.en.active() {
		return
	}
	if l := s.en.current; at >= l.sweepFrom {
		for _, ts := range l.sessions.expired(at) {
			if !ts.sess.dead {
				s.endSession(ts.sess, nil, now)
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
		s.removeEphemerals(s.data.Begin(tree.SuperUser, now.UnixMilli(), false), session)
	}
}
