package zkserver

import (
	"maps"
	"time"
)

// Depose cuts the leader off from the other endpoints, and closes their ends of the connections.
// The other endpoints elect another leader at once; the new leader has every committed transaction
// and gives all sessions their full timeout from its own start. Depose returns the number of the
// deposed endpoint, or 0 without a leader.
//
// The old leader does not notice for [Config.SyncLimit] ticks and until it next counts its
// followers, at most a tick later. During this time it answers reads from the tree as of the
// deposition, pings, and syncs of its own clients. It serves the sessions of that moment, also on
// new connections, and expires them by its own clock: it refuses a session that has expired there,
// and it serves a session that the next leader has expired. It commits nothing: writes and new
// sessions get no answer, and neither do later requests of the same session, also on new
// connections. Then it closes its connections. [Endpoint.Rejoin] ends the cut earlier. A leader
// that is frozen for longer than [Config.SyncLimit] ticks is deposed in the same way when it
// resumes, until it counts its followers.
func (s *Server) Depose() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.en.active() || len(s.en.endpoints) == 1 {
		return 0
	}
	l := s.en.current
	s.en.relink(func() { l.leader.apart = true })
	for _, e := range s.en.endpoints {
		if e != l.leader && e.in == l {
			s.en.resetEnd(e, l.leader)
		}
	}
	s.en.reconsider()
	return l.leader.number
}

// doubtFor makes follower e and its leader give up their connection after d.
func (en *ensemble) doubtFor(e *Endpoint, d time.Duration) {
	var t *timer
	t = en.s.afterFunc(d, func() {
		en.s.mu.Lock()
		defer en.s.mu.Unlock()
		// The timer may have been replaced while its function waited for mu.
		if en.s.closed || e.doubt != t {
			return
		}
		e.doubt = nil
		en.giveUp(e)
		en.reconsider()
	})
	e.doubt = t
}

// giveUp ends the connection between follower e and its leader when the patience of both has ended.
// A frozen endpoint notices when it resumes.
func (en *ensemble) giveUp(e *Endpoint) {
	l := e.in
	switch {
	case e.thaw == nil:
		en.leave(e)
	case !e.cutOff:
		l.cutOff(e)
		delete(l.silent, e)
		l.check()
		l.planCount()
	}
}

// certain stops the doubt timer of follower e.
func (en *ensemble) certain(e *Endpoint) {
	e.doubt.stop()
	e.doubt = nil
}

// strand cuts the replicas of e off from new commits.
func (en *ensemble) strand(e *Endpoint) {
	for _, r := range en.replicas {
		if r.ep == e {
			en.fallBehind(r)
			r.cut, r.asleep = true, false
		}
	}
	maps.DeleteFunc(en.lagging, func(_ int64, r *replica) bool { return r.ep == e })
}

// leave makes e look for a leader: it closes the connections of its clients. If e leads, the
// followers that can notice leave as well.
func (en *ensemble) leave(e *Endpoint) {
	l := e.in
	if l != nil && l.leader == e {
		en.endLeadership(l)
		return
	}
	en.part(e)
	if l == nil {
		return
	}
	if en.linked(e, l.leader) {
		delete(l.silent, e) // the leader's end of the connection is also closed
	}
	l.check()
	l.planCount()
}

// endLeadership makes the leader of l, and the followers that can notice, look for a leader.
func (en *ensemble) endLeadership(l *leadership) {
	l.stop()
	if en.current == l {
		en.current = nil
	}
	for _, e := range en.endpoints {
		switch {
		case e == l.leader || l.has(e) && e.thaw == nil:
			en.part(e)
		case l.has(e):
			en.certain(e)
			l.cutOff(e) // e notices when it resumes
		}
	}
}

// part removes e from its leadership, if it belongs to one.
func (en *ensemble) part(e *Endpoint) {
	en.certain(e)
	e.forgetTouches()
	if e.in != nil {
		e.last, e.lost = en.zxidOf(e.rep), time.Now()
	}
	en.s.hangUpOn(e)
	last := e.rep.view
	switch {
	case last != nil:
	case en.s.cfg.ReadOnlyMode:
		last = en.viewNow(e.rep)
	default:
		last = &view{zxid: e.last}
	}
	e.in, e.cutOff = nil, false
	*e.rep = *newReplica(e)
	e.rep.view, e.rep.cut = last, true
}

// join makes e a follower of the current leader, or installs e as the leader.
func (en *ensemble) join(e *Endpoint) {
	for _, c := range en.s.conns.on(e) {
		if c.sess != nil {
			c.hangUp() // a read-only session
		}
	}
	*e.rep = *newReplica(e)
	e.in = en.current
}

// reconsider lets the endpoints that look for a leader join one, or starts an election, and wakes
// the goroutines that wait for the result. The caller holds mu.
func (en *ensemble) reconsider() {
	if en.s.closed {
		return
	}
	if en.current == nil {
		en.endHopeless()
		en.elect()
	}
	if en.active() {
		for _, e := range en.endpoints {
			if en.looks(e) && en.linked(e, en.current.leader) {
				en.join(e)
			}
		}
	}
	en.s.setTimer()
	en.announce()
}

// endHopeless ends the leadership of a deposed leader if only that leader blocks an election. In a
// real ensemble a returning follower joins such a leader again, and its clients notice nothing.
func (en *ensemble) endHopeless() {
	if en.candidate() != nil {
		return
	}
	for _, e := range en.endpoints {
		l := e.in
		if l == nil || l.leader != e || e.thaw != nil {
			continue
		}
		n := l.size()
		for _, other := range en.endpoints {
			if en.looks(other) && en.linked(e, other) {
				n++
			}
		}
		if n > l.size() && en.isMajority(n) {
			en.endLeadership(l)
		}
	}
}
