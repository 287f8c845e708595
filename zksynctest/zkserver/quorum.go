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
func (en *ensemble) linked(a, b *Endpoint) bool {
	return a == b || !a.apart && !b.apart && !en.cutLinks[linkOf(a, b)]
}

type link [2]int

func linkOf(a, b *Endpoint) link { return link{min(a.number, b.number), max(a.number, b.number)} }

// between is the link of endpoints i and j.
func (en *ensemble) between(i, j int) link {
	a, b := en.s.Endpoint(i), en.s.Endpoint(j)
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
	l := s.en.between(i, j)
	s.en.relink(func() { s.en.cutLinks[l] = true })
}

// HealLink ends what [Server.CutLink] began. What was done by
// [Endpoint.CutFromLeader] stays.
func (s *Server) HealLink(i, j int) {
	l := s.en.between(i, j)
	s.en.relink(func() { delete(s.en.cutLinks, l) })
}

// relink changes links. Who is in doubt and can talk again finds out what it
// missed.
func (en *ensemble) relink(change func()) {
	en.s.mu.Lock()
	defer en.s.mu.Unlock()
	before := map[link]bool{}
	for _, a := range en.endpoints {
		for _, b := range en.endpoints {
			before[linkOf(a, b)] = en.linked(a, b)
		}
	}
	change()
	for _, a := range en.endpoints {
		for _, b := range en.endpoints {
			if en.linked(a, b) && !before[linkOf(a, b)] && a.member && a.rep.cut && a.thaw == nil {
				en.leave(a)
			}
		}
	}
	en.checkLinks()
	en.reconsider()
}

// checkLinks puts those in doubt who do not hear their leader, and the leader with
// its last followers if they are too few. The caller reconsiders.
func (en *ensemble) checkLinks() {
	if en.leader == nil {
		return
	}
	var with []*Endpoint
	for _, e := range en.endpoints {
		if !e.member || e.rep.cut {
			continue
		}
		if en.linked(e, en.leader) {
			with = append(with, e)
		} else {
			en.sever(e)
			en.doubtFor(e, en.patience())
		}
	}
	if en.isMajority(len(with)) {
		return
	}
	en.leader = nil
	for _, e := range with {
		en.sever(e)
		en.doubtFor(e, en.patience())
	}
}

// patience is how long leader and follower do without a word from each other.
func (en *ensemble) patience() time.Duration {
	return time.Duration(en.s.cfg.SyncLimit) * en.s.cfg.TickTime
}

func (en *ensemble) isMajority(n int) bool { return n > len(en.endpoints)/2 }

// sever ends what e has in common with its leader. It does not know yet.
func (en *ensemble) sever(e *Endpoint) {
	for _, r := range en.replicas {
		if r.ep == e {
			en.fallBehind(r)
			r.cut, r.asleep = true, false
		}
	}
	maps.DeleteFunc(en.s.lagging, func(_ int64, r *replica) bool { return r.ep == e })
	en.forgetHeard(e)
}

// doubtFor has e wait for d before it draws its conclusions, or be waited for.
func (en *ensemble) doubtFor(e *Endpoint, d time.Duration) {
	if e.doubt != nil {
		return
	}
	var t *timer
	t = en.s.afterFunc(d, func() {
		en.s.mu.Lock()
		defer en.s.mu.Unlock()
		if en.s.closed || e.doubt != t {
			return
		}
		e.doubt = nil
		switch {
		case e.thaw == nil:
			en.leave(e)
		case e == en.leader:
			en.depose()
		default:
			en.sever(e)
			if en.leader != nil && !en.isMajority(en.followed()) {
				en.depose()
			}
		}
		en.reconsider()
	})
	e.doubt = t
}

func (en *ensemble) certain(e *Endpoint) {
	e.doubt.stop()
	e.doubt = nil
}

// followed is how many endpoints belong to the leader's quorum as far as it knows,
// with itself.
func (en *ensemble) followed() int {
	n := 0
	for _, e := range en.endpoints {
		if e.member && !e.rep.cut {
			n++
		}
	}
	return n
}

// active tells whether there is a leader that can commit.
func (en *ensemble) active() bool {
	if en.s.closed || en.leader == nil || en.leader.thaw != nil {
		return false
	}
	n := 0
	for _, e := range en.endpoints {
		if e.member && !e.rep.cut && e.thaw == nil {
			n++
		}
	}
	return en.isMajority(n)
}

// depose ends the leadership. All that belong to it find out at once, but for
// those that are frozen.
func (en *ensemble) depose() {
	en.leader = nil
	for _, e := range en.endpoints {
		switch {
		case !e.member || e.rep.cut:
		case e.thaw != nil:
			en.certain(e)
			en.sever(e)
		default:
			en.leave(e)
		}
	}
}

// leave makes e look for a leader. Its clients have to go.
func (en *ensemble) leave(e *Endpoint) {
	en.certain(e)
	en.forgetHeard(e)
	if e.member {
		e.last, e.lost = en.zxidOf(e.rep), time.Now()
	}
	e.member = false
	en.s.hangUpOn(e)
	last := e.rep.view
	switch {
	case last != nil:
	case en.s.cfg.ReadOnlyMode:
		last = en.viewNow(e.rep)
	default:
		last = &view{zxid: e.last}
	}
	if e == en.leader {
		en.leader = nil
	}
	*e.rep = replica{ep: e, view: last, cut: true, watches: newWatchTables()}
}

// join makes e a member that is in step.
func (en *ensemble) join(e *Endpoint) {
	for _, c := range en.s.connsOn(e) {
		if c.sess != nil {
			en.s.hangUp(c) // it only read
		}
	}
	*e.rep = replica{ep: e, watches: newWatchTables()}
	e.member = true
}

// reconsider lets those join a leader who look for one, or elect one, and wakes who
// waits for either. The caller holds mu.
func (en *ensemble) reconsider() {
	if en.s.closed {
		return
	}
	if en.leader == nil {
		en.elect()
	}
	if en.active() {
		for _, e := range en.endpoints {
			if en.looks(e) && en.linked(e, en.leader) {
				en.join(e)
			}
		}
	}
	en.s.setTimer()
	en.announce()
}

// announce wakes those who wait for the ensemble to change.
func (en *ensemble) announce() {
	if en.changed != nil {
		close(en.changed)
		en.changed = nil
	}
}

// change is a channel that is closed when the ensemble changes.
func (en *ensemble) change() <-chan struct{} {
	if en.changed == nil {
		en.changed = make(chan struct{})
	}
	return en.changed
}

func (en *ensemble) looks(e *Endpoint) bool { return !e.member && !e.down && e.thaw == nil }

// voters are those who would follow e.
func (en *ensemble) voters(e *Endpoint) int {
	n := 0
	for _, other := range en.endpoints {
		if en.looks(other) && en.linked(e, other) {
			n++
		}
	}
	return n
}

// candidate is who would be elected now: of those that a majority can follow the
// one that knows most, and then the one with the greatest number.
func (en *ensemble) candidate() *Endpoint {
	var best *Endpoint
	for _, e := range en.endpoints {
		if en.looks(e) && en.isMajority(en.voters(e)) && (best == nil || e.last >= best.last) {
			best = e
		}
	}
	return best
}

// elect makes the candidate the leader, after the time that an election takes.
func (en *ensemble) elect() {
	switch e := en.candidate(); {
	case e == nil:
		en.election.stop()
		en.election = nil
	case en.s.cfg.ElectionTime == 0 || len(en.endpoints) == 1:
		en.lead(e)
	case en.election == nil:
		var t *timer
		t = en.s.afterFunc(en.s.cfg.ElectionTime, func() {
			en.s.mu.Lock()
			defer en.s.mu.Unlock()
			if en.s.closed || en.election != t {
				return
			}
			en.election = nil
			if e := en.candidate(); e != nil && en.leader == nil {
				en.lead(e)
			}
			en.reconsider()
		})
		en.election = t
	}
}

// lead makes e the leader of those that can follow it. All sessions begin their
// time anew. A server that is no ensemble knows no epochs.
func (en *ensemble) lead(e *Endpoint) {
	en.leader = e
	if len(en.endpoints) > 1 {
		en.epoch++
	}
	for _, other := range en.endpoints {
		if en.looks(other) && en.linked(e, other) {
			en.join(other)
		}
	}
	now := time.Now()
	for _, sess := range en.s.sessions {
		en.s.touch(sess, now)
	}
	en.s.reapDue = 0
	en.s.planReaper(now)
}
