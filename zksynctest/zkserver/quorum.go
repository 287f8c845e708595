package zkserver

import (
	"fmt"
	"maps"
	"time"
)

// What follows is not a consensus: there is one tree and one sequence of
// transactions, and this decides which endpoints take part in it, and when.
//
// An endpoint is a member while it believes that it belongs to a quorum. One whose
// replica is cut is wrong about that, and finds out at the end of its doubt.

// linked tells whether a and b can talk to each other, if both run.
func (s *Server) linked(a, b *Endpoint) bool {
	return a == b || !a.apart && !b.apart && !s.cutLinks[linkOf(a, b)]
}

type link [2]int

func linkOf(a, b *Endpoint) link { return link{min(a.number, b.number), max(a.number, b.number)} }

// between is the link of endpoints i and j.
func (s *Server) between(i, j int) link {
	a, b := s.Endpoint(i), s.Endpoint(j)
	if a == b {
		panic(fmt.Sprintf("zkserver: endpoint %d has no link to itself", i))
	}
	return linkOf(a, b)
}

// CutLink cuts the link between endpoints i and j, until [Server.HealLink]. A
// follower without a link to its leader is as one after
// [Endpoint.CutFromLeader]; a leader of which too few followers are left loses its
// quorum. A link between two followers is not missed until they need to elect.
func (s *Server) CutLink(i, j int) {
	l := s.between(i, j)
	s.relink(func() { s.cutLinks[l] = true })
}

// HealLink ends what [Server.CutLink] began. What was done by
// [Endpoint.CutFromLeader] stays.
func (s *Server) HealLink(i, j int) {
	l := s.between(i, j)
	s.relink(func() { delete(s.cutLinks, l) })
}

// relink changes links. Who is in doubt and can talk again finds out what it
// missed.
func (s *Server) relink(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[link]bool{}
	for _, a := range s.endpoints {
		for _, b := range s.endpoints {
			before[linkOf(a, b)] = s.linked(a, b)
		}
	}
	change()
	for _, a := range s.endpoints {
		for _, b := range s.endpoints {
			if s.linked(a, b) && !before[linkOf(a, b)] && a.member && a.rep.cut && a.thaw == nil {
				s.leave(a)
			}
		}
	}
	s.checkLinks()
	s.reconsider()
}

// checkLinks puts those in doubt who do not hear their leader, and the leader with
// its last followers if they are too few. The caller reconsiders.
func (s *Server) checkLinks() {
	if s.leader == nil {
		return
	}
	var with []*Endpoint
	for _, e := range s.endpoints {
		if !e.member || e.rep.cut {
			continue
		}
		if s.linked(e, s.leader) {
			with = append(with, e)
		} else {
			s.sever(e)
			s.doubtFor(e, s.patience())
		}
	}
	if s.isMajority(len(with)) {
		return
	}
	s.leader = nil
	for _, e := range with {
		s.sever(e)
		s.doubtFor(e, s.patience())
	}
}

// patience is how long leader and follower do without a word from each other.
func (s *Server) patience() time.Duration { return time.Duration(s.cfg.SyncLimit) * s.cfg.TickTime }

func (s *Server) isMajority(n int) bool { return n > len(s.endpoints)/2 }

// sever ends what e has in common with its leader. It does not know yet.
func (s *Server) sever(e *Endpoint) {
	for _, r := range s.replicas {
		if r.ep == e {
			s.fallBehind(r)
			r.cut, r.asleep = true, false
		}
	}
	maps.DeleteFunc(s.lagging, func(_ int64, r *replica) bool { return r.ep == e })
	s.forgetHeard(e)
}

// doubtFor has e wait for d before it draws its conclusions, or be waited for.
func (s *Server) doubtFor(e *Endpoint, d time.Duration) {
	if e.doubt != nil {
		return
	}
	var t *timer
	t = s.afterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed || e.doubt != t {
			return
		}
		e.doubt = nil
		switch {
		case e.thaw == nil:
			s.leave(e)
		case e == s.leader:
			s.depose()
		default:
			s.sever(e)
			if s.leader != nil && !s.isMajority(s.followed()) {
				s.depose()
			}
		}
		s.reconsider()
	})
	e.doubt = t
}

func (s *Server) certain(e *Endpoint) {
	e.doubt.stop()
	e.doubt = nil
}

// followed is how many endpoints belong to the leader's quorum as far as it knows,
// with itself.
func (s *Server) followed() int {
	n := 0
	for _, e := range s.endpoints {
		if e.member && !e.rep.cut {
			n++
		}
	}
	return n
}

// active tells whether there is a leader that can commit.
func (s *Server) active() bool {
	if s.closed || s.leader == nil || s.leader.thaw != nil {
		return false
	}
	n := 0
	for _, e := range s.endpoints {
		if e.member && !e.rep.cut && e.thaw == nil {
			n++
		}
	}
	return s.isMajority(n)
}

// depose ends the leadership. All that belong to it find out at once, but for
// those that are frozen.
func (s *Server) depose() {
	s.leader = nil
	for _, e := range s.endpoints {
		switch {
		case !e.member || e.rep.cut:
		case e.thaw != nil:
			s.certain(e)
			s.sever(e)
		default:
			s.leave(e)
		}
	}
}

// leave makes e look for a leader. Its clients have to go.
func (s *Server) leave(e *Endpoint) {
	s.certain(e)
	s.forgetHeard(e)
	if e.member {
		e.last, e.lost = s.zxidOf(e.rep), time.Now()
	}
	e.member = false
	s.hangUpOn(e)
	last := e.rep.view
	switch {
	case last != nil:
	case s.cfg.ReadOnlyMode:
		last = s.viewNow(e.rep)
	default:
		last = &view{zxid: e.last}
	}
	if e == s.leader {
		s.leader = nil
	}
	*e.rep = replica{ep: e, view: last, cut: true, watches: newWatchTables()}
}

// join makes e a member that is in step.
func (s *Server) join(e *Endpoint) {
	for _, c := range s.connsOn(e) {
		if c.sess != nil {
			s.hangUp(c) // it only read
		}
	}
	*e.rep = replica{ep: e, watches: newWatchTables()}
	e.member = true
}

// reconsider lets those join a leader who look for one, or elect one, and wakes who
// waits for either. The caller holds mu.
func (s *Server) reconsider() {
	if s.closed {
		return
	}
	if s.leader == nil {
		s.elect()
	}
	if s.active() {
		for _, e := range s.endpoints {
			if s.looks(e) && s.linked(e, s.leader) {
				s.join(e)
			}
		}
	}
	s.setTimer()
	s.announce()
}

// announce wakes those who wait for the ensemble to change.
func (s *Server) announce() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// change is a channel that is closed when the ensemble changes.
func (s *Server) change() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *Server) looks(e *Endpoint) bool { return !e.member && !e.down && e.thaw == nil }

// voters are those who would follow e.
func (s *Server) voters(e *Endpoint) int {
	n := 0
	for _, other := range s.endpoints {
		if s.looks(other) && s.linked(e, other) {
			n++
		}
	}
	return n
}

// candidate is who would be elected now: of those that a majority can follow the
// one that knows most, and then the one with the greatest number.
func (s *Server) candidate() *Endpoint {
	var best *Endpoint
	for _, e := range s.endpoints {
		if s.looks(e) && s.isMajority(s.voters(e)) && (best == nil || e.last >= best.last) {
			best = e
		}
	}
	return best
}

// elect makes the candidate the leader, after the time that an election takes.
func (s *Server) elect() {
	switch e := s.candidate(); {
	case e == nil:
		s.election.stop()
		s.election = nil
	case s.cfg.ElectionTime == 0 || len(s.endpoints) == 1:
		s.lead(e)
	case s.election == nil:
		var t *timer
		t = s.afterFunc(s.cfg.ElectionTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed || s.election != t {
				return
			}
			s.election = nil
			if e := s.candidate(); e != nil && s.leader == nil {
				s.lead(e)
			}
			s.reconsider()
		})
		s.election = t
	}
}

// lead makes e the leader of those that can follow it. All sessions begin their
// time anew. A server that is no ensemble knows no epochs.
func (s *Server) lead(e *Endpoint) {
	s.leader = e
	if len(s.endpoints) > 1 {
		s.epoch++
	}
	for _, other := range s.endpoints {
		if s.looks(other) && s.linked(e, other) {
			s.join(other)
		}
	}
	now := time.Now()
	for _, sess := range s.sessions {
		s.touch(sess, now)
	}
	s.reapDue = 0
	s.planReaper(now)
}
