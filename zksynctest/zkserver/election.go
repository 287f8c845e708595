package zkserver

import "time"

// looks reports whether e looks for a leader.
func (en *ensemble) looks(e *Endpoint) bool { return e.in == nil && !e.down && e.thaw == nil }

// voters returns the number of endpoints that would follow e.
func (en *ensemble) voters(e *Endpoint) int {
	n := 0
	for _, other := range en.endpoints {
		if en.looks(other) && en.linked(e, other) {
			n++
		}
	}
	return n
}

// candidate returns the endpoint that an election would choose now: among the endpoints that a
// majority can follow, the endpoint with the latest transaction, and among equals the endpoint with
// the greatest number.
func (en *ensemble) candidate() *Endpoint {
	var best *Endpoint
	for _, e := range en.endpoints {
		if en.looks(e) && en.isMajority(en.voters(e)) && (best == nil || e.last >= best.last) {
			best = e
		}
	}
	return best
}

// elect makes the candidate the leader after the duration of an election.
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
			if e := en.candidate(); e != nil && en.current == nil {
				en.lead(e)
			}
			en.reconsider()
		})
		en.election = t
	}
}

// lead makes e the leader of the endpoints that can follow e. Each session gets the full timeout
// with which it was created, because only the previous leader knew a timeout that was negotiated in
// a reconnect. A standalone server has no epochs.
func (en *ensemble) lead(e *Endpoint) {
	now := time.Now()
	l := newLeadership(en, e, now)
	en.current = l
	if len(en.endpoints) > 1 {
		en.s.data.Epoch++
		en.s.journal.AppendZxid(en.s.data.Latest()) // clients learn of the epoch before its first transaction
	}
	for _, other := range en.endpoints {
		if en.looks(other) && en.linked(e, other) {
			en.join(other)
		}
	}
	// No endpoint owns a session of the former leader until an endpoint asks for the session.
	for _, sess := range en.s.sessions.byID {
		l.sessions.track(sess, nil, en.s.elapsed(now))
	}
	en.s.setTimer()
	en.s.agenda.reapDue = 0
	en.s.planReaper(now)
}

// leadAgain starts a new leadership with the leader and the followers of the current leadership.
func (en *ensemble) leadAgain() {
	l := en.current
	l.stop()
	var frozen []*Endpoint
	for _, e := range en.endpoints {
		if l.has(e) {
			en.part(e)
			if e.thaw != nil {
				frozen = append(frozen, e)
			}
		}
	}
	en.lead(l.leader)
	// No frozen endpoint looks for a leader, so lead has left these endpoints out.
	for _, e := range frozen {
		en.join(e)
		en.fallSilent(e)
	}
}
