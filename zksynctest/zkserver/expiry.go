package zkserver

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// planSweep resets the timer if the bucket expires before the timer fires. Only the committing
// leader ends sessions.
func (s *Server) planSweep(l *leadership, bucket int64) {
	if l == s.en.current && bucket != 0 && (s.agenda.due == 0 || bucket < s.agenda.due) {
		s.setTimer()
	}
}

// setTimer sets the server's single timer for the next due action, or stops the timer.
func (s *Server) setTimer() {
	s.agenda.timer.stop()
	s.agenda.timer, s.agenda.due = nil, 0
	// Without a leader that can commit, no session expires.
	if !s.en.active() {
		return
	}
	l := s.en.current
	s.agenda.due = l.sessions.next()
	if len(l.sessions.picked) > 0 {
		s.agenda.due = max(l.sweepFrom, 1)
	}
	for _, left := range s.sessions.leftovers {
		if s.agenda.due == 0 || left.due < s.agenda.due {
			s.agenda.due = left.due
		}
	}
	if s.agenda.reapDue != 0 && (s.agenda.due == 0 || s.agenda.reapDue < s.agenda.due) {
		s.agenda.due = s.agenda.reapDue
	}
	if s.agenda.due == 0 {
		return
	}
	wait := time.Duration(max(s.agenda.due, l.sweepFrom))*time.Millisecond - time.Since(s.base)
	s.agenda.timer = s.afterFunc(max(wait, 0), s.onTimer)
}

func (s *Server) onTimer() {
	s.mu.Lock()
	s.sweep(time.Now())
	s.mu.Unlock()
	_ = s.persist() // if persist fails, it stops the server, and Serve and Close return the error
}

// sweep runs the due actions: it expires whole buckets of sessions, removes ephemerals whose
// removal was delayed, and reaps znodes. The caller holds mu.
func (s *Server) sweep(now time.Time) {
	at := s.elapsed(now)
	if !s.en.active() {
		return
	}
	if l := s.en.current; at >= l.sweepFrom {
		for _, ts := range l.sessions.expired(at) {
			// A leader that was frozen may have picked the session some time before the sweep.
			// The session may have been closed since.
			if !ts.sess.dead {
				s.endSession(ts.sess, nil, now)
			}
		}
		s.removeLeftovers(at, now)
		if s.agenda.reapDue != 0 && s.agenda.reapDue <= at {
			s.runReaper(now)
		}
	}
	s.setTimer()
}

func (s *Server) removeLeftovers(at int64, now time.Time) {
	slices.SortStableFunc(s.sessions.leftovers, func(a, b leftover) int { return cmp.Compare(a.due, b.due) })
	for len(s.sessions.leftovers) > 0 && s.sessions.leftovers[0].due <= at {
		session := s.sessions.leftovers[0].session
		s.sessions.leftovers = s.sessions.leftovers[1:]
		s.removeEphemerals(s.data.Begin(tree.SuperUser, now.UnixMilli(), false), session)
	}
}
