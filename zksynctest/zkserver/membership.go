package zkserver

import (
	"maps"
	"time"
)

// Depose cuts the leader off from the other endpoints, and closes their ends of the
// connections: they elect another leader at once, which has every committed
// transaction and gives all sessions their full timeout from its own start. Depose
// returns the number of the endpoint that led, or 0 if none did.
//
// For [Config.SyncLimit] ticks, and until it counts its followers next, within a tick
// more, the old leader does not know. It answers reads, from the tree as it was,
// pings, and syncs of its own clients. It takes up sessions that were there when it
// was deposed, on new connections too, and it alone keeps their time: a session that
// it believes to have expired is refused, and a session that the next leader has
// expired is served. It commits nothing: writes and new sessions get no answer, and
// neither do later requests of the same session, over new connections too. Then it
// closes its connections. [Endpoint.Rejoin] ends the cut earlier. A leader that is
// frozen for longer than [Config.SyncLimit] ticks finds itself in the same position
// when it goes on, until it counts its followers.
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

// doubtFor has follower e and its leader wait for d before the connection between
// them is given up.
func (en *ensemble) doubtFor(e *Endpoint, d time.Duration) {
	var t *timer
	t = en.s.afterFunc(d, func() {
		en.s.mu.Lock()
		defer en.s.mu.Unlock()
		if en.s.closed || e.doubt != t {
			return
		}
		e.doubt = nil
		en.giveUp(e)
		en.reconsider()
	})
	e.doubt = t
}

// giveUp ends the connection between follower e and its leader, after a silence for
// which neither of them has more patience. An endpoint that is frozen notices only
// when it goes on.
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

// certain ends the doubt of follower e.
func (en *ensemble) certain(e *Endpoint) {
	e.doubt.stop()
	e.doubt = nil
}

// strand cuts the replicas of e off from what the ensemble commits.
func (en *ensemble) strand(e *Endpoint) {
	for _, r := range en.replicas {
		if r.ep == e {
			en.fallBehind(r)
			r.cut, r.asleep = true, false
		}
	}
	maps.DeleteFunc(en.lagging, func(_ int64, r *replica) bool { return r.ep == e })
}

// leave makes e look for a leader: it closes the connections of its clients. A
// leader that leaves takes the followers with it that can notice.
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
		delete(l.silent, e) // the leader's end of the connection is closed too
	}
	l.check()
	l.planCount()
}

// endLeadership has the leader of l, and the followers that hear of it, look for a
// leader.
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
			l.cutOff(e) // it notices when it goes on
		}
	}
}

// part takes e out of its leadership, if it belongs to one.
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

// join makes e a follower of the current leader, or the leader itself.
func (en *ensemble) join(e *Endpoint) {
	for _, c := range en.s.conns.on(e) {
		if c.sess != nil {
			c.hangUp() // it only read
		}
	}
	*e.rep = *newReplica(e)
	e.in = en.current
}

// reconsider lets the endpoints that look for a leader join one, or elects one, and
// wakes the goroutines that wait for either. The caller holds mu.
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

// endHopeless ends the leadership of a deposed leader where only that leader stands
// in the way of an election. With real servers a follower that comes back joins such
// a leader again, whose clients do not notice anything then.
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
