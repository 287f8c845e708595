package zkserver

import "time"

// touch tells the leader that c's session is alive, if c's server can reach the leader, and reports
// whether the leader has the session. A touch at the leader takes effect at once. A follower keeps
// the touch for its next report; requests that it forwards touch nothing at the leader.
func (c *conn) touch(l *leadership, now time.Time) bool {
	s := c.s
	switch {
	case l == nil:
		return true // no leader can say that the session has ended
	case c.ep == l.leader:
		bucket := l.sessions.touch(c.sess.id, c.timeout, s.elapsed(now))
		s.planSweep(l, bucket)
		return bucket != 0
	}
	l.note(c.ep, c.sess.id, c.timeout)
	return true
}

// note records a touch at follower e.
func (l *leadership) note(e *Endpoint, id int64, timeout time.Duration) {
	e.touches[id] = touched{timeout, e.touches[id].times + 1}
	if l.ping == nil && !l.overduePing {
		// A real leader pings at each half tick of its term, and not half a tick after a touch.
		half := l.en.s.cfg.TickTime / 2
		age := time.Since(l.began)
		l.pingAfter((age/half+1)*half - age)
	}
}

// noteCreated records the touches that the commit of a new session leaves at the followers.
func (l *leadership) noteCreated(sess *session) {
	for _, e := range l.en.endpoints {
		if e != l.leader && l.has(e) && e.thaw == nil {
			l.note(e, sess.id, sess.timeout)
		}
	}
}

// pingAfter makes the leader ask its followers for their touches after d. The timer runs only while
// some follower has touches to report.
func (l *leadership) pingAfter(d time.Duration) {
	var t *timer
	t = l.en.s.afterFunc(d, func() {
		s := l.en.s
		s.mu.Lock()
		defer s.mu.Unlock()
		// A timer that is stopped too late calls its function all the same.
		if s.closed || l.ping != t {
			return
		}
		l.ping = nil
		switch grace := l.sweepFrom - s.elapsed(time.Now()); {
		case l.leader.thaw != nil:
			l.overduePing = true
			return
		case grace > 0:
			l.pingAfter(time.Duration(grace) * time.Millisecond)
			return
		}
		// In a real server the clocks of the reports and of the sweep are not aligned, so either
		// may come first at one instant. Here the sweep comes first.
		s.sweep(time.Now())
		l.pingAll()
	})
	l.ping = t
}

// pingAll makes all followers report. A frozen follower reports as soon as it resumes, before any
// other action.
func (l *leadership) pingAll() {
	for _, e := range l.en.endpoints {
		switch {
		case e == l.leader || !l.has(e):
		case e.thaw != nil:
			e.overdue = len(e.touches) > 0
		default:
			l.report(e)
		}
	}
}

// report passes the touches of follower e since its last report to the leader.
func (l *leadership) report(e *Endpoint) {
	s := l.en.s
	now := s.elapsed(time.Now())
	e.overdue = false
	for id, heard := range e.touches {
		if heard.times > 1 || !s.en.losing[id] {
			s.planSweep(l, l.sessions.touch(id, heard.timeout, now))
		}
	}
	clear(e.touches)
}

// forgetTouches drops the touches that were not reported yet.
func (e *Endpoint) forgetTouches() {
	clear(e.touches)
	e.overdue = false
}

// LoseTouches makes followers lose one touch of session id with each report to their leader, until
// it is switched off. A race in real servers has this effect: a touch that a follower records while
// it swaps its table for a report is in neither table. A session with one touch since the last
// report is then not reported; a session with two touches is reported. Touches at the leader
// itself, new connections and new sessions are not lost.
func (s *Server) LoseTouches(id int64, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.en.losing[id] = true
	} else {
		delete(s.en.losing, id)
	}
}
