package zkserver

import (
	"maps"
	"slices"
	"time"
)

// leadership is one leader's time in office, and what that leader knows: its
// followers and the sessions. It begins with an election, and ends when the leader
// notices that too few followers are left, or stops. A leader that the others have
// deposed goes on until it notices: then there are two leaderships at a time, of
// which the earlier one commits nothing.
type leadership struct {
	en       *ensemble
	leader   *Endpoint
	began    time.Time // pings and counts happen at multiples of a tick from here
	sessions sessionTracker
	// silent has the followers that the leader hears nothing of, with the time since
	// when. The leader believes in them for as long as its patience lasts.
	silent map[*Endpoint]time.Time
	count  *timer // at the end of which the leader notices that it has lost its quorum
	ping   *timer // at the end of which followers report their touches
	// overduePing is that the leader was frozen when it should have pinged.
	overduePing bool
	// sweepFrom is the time, on the server's clock, before which a leader that was
	// frozen does not look for expired sessions.
	sweepFrom int64

	// deposed is that the leader has lost its quorum for good: what it proposes is
	// never committed.
	deposed bool
	// proposed is that a deposed leader has proposed something. The sync of a follower
	// then waits for that, in vain.
	proposed bool
}

func newLeadership(en *ensemble, leader *Endpoint, now time.Time) *leadership {
	return &leadership{
		en: en, leader: leader, began: now,
		silent:   map[*Endpoint]time.Time{},
		sessions: newSessionTracker(en.s.cfg.TickTime),
	}
}

// stop ends the timers.
func (l *leadership) stop() {
	l.count.stop()
	l.ping.stop()
	l.count, l.ping = nil, nil
}

// has reports whether e belongs to l and its connection with the leader works.
func (l *leadership) has(e *Endpoint) bool { return e.in == l && !e.cutOff }

// size is the number of endpoints that l has, with the leader.
func (l *leadership) size() int {
	n := 0
	for _, e := range l.en.endpoints {
		if l.has(e) {
			n++
		}
	}
	return n
}

// hush is called when the leader hears nothing of follower e any more, or e nothing
// of the leader: because the link is cut, or because one of the two is frozen. At
// the end of its patience the side that runs gives up.
func (l *leadership) hush(e *Endpoint) {
	if _, ok := l.silent[e]; !ok {
		l.silent[e] = time.Now()
	}
	if e.doubt == nil {
		l.en.doubtFor(e, l.en.patience())
	}
	l.planCount()
}

// hear is called when what kept leader and follower e silent may be over.
func (l *leadership) hear(e *Endpoint) {
	if !l.has(e) || e.thaw != nil || l.leader.thaw != nil {
		return
	}
	l.en.certain(e)
	delete(l.silent, e)
	l.planCount()
}

// lose is called when the link between the leader and e is cut. Neither notices yet.
func (l *leadership) lose(e *Endpoint) {
	if !l.has(e) {
		return
	}
	l.cutOff(e)
	l.hush(e)
	l.check()
}

// cutOff ends what follower e has in common with its leader. Follower e does not
// notice: it answers from the tree as it was, and what it hears of sessions is lost.
func (l *leadership) cutOff(e *Endpoint) {
	e.cutOff = true
	l.en.strand(e)
	e.forgetTouches()
}

// drop closes the connection between the leader and endpoint e. The leader believes
// in e no more; e leaves at once if it can notice.
func (l *leadership) drop(e *Endpoint) {
	delete(l.silent, e)
	if e.in == l {
		switch {
		case e.thaw != nil:
			l.en.certain(e)
			l.cutOff(e) // it notices when it goes on
		case l.en.linked(e, l.leader):
			l.en.leave(e)
		}
	}
	l.check()
	l.planCount()
}

// check deposes the leader if too few of its followers are left to commit anything.
// The leader need not notice yet.
func (l *leadership) check() {
	if l.deposed || l.en.isMajority(l.size()) {
		return
	}
	l.deposed = true
	if l.en.current == l {
		l.en.current = nil
	}
	for _, e := range l.en.endpoints {
		if l.has(e) {
			l.en.strand(e)
		}
	}
	l.planCount()
}

// expire has a deposed leader look for expired sessions. It proposes their end, which
// is never committed: the sessions stay, and it answers them no more. The leader that
// commits has a timer for that.
func (l *leadership) expire(now time.Time) {
	at := l.en.s.elapsed(now)
	if !l.deposed || at < l.sweepFrom {
		return
	}
	for _, ts := range l.sessions.expired(at) {
		l.end(ts)
	}
}

// end has a deposed leader propose the end of a session.
func (l *leadership) end(ts *trackedSession) {
	l.sessions.unlist(ts)
	ts.closing, l.proposed = true, true
}

// planCount sets the timer for the moment at which the leader notices that it has
// lost its quorum, if it has. A leader counts its followers once a tick.
func (l *leadership) planCount() {
	l.count.stop()
	l.count = nil
	if l.leader.in != l || l.leader.thaw != nil {
		return
	}
	at, lost := l.losesQuorum()
	if !lost {
		return
	}
	now, tick := time.Now(), l.en.s.cfg.TickTime
	ticks := (at.Sub(l.began) + tick - 1) / tick
	if l.began.Add(ticks * tick).Before(now) {
		ticks = now.Sub(l.began)/tick + 1
	}
	var t *timer
	t = l.en.s.afterFunc(l.began.Add(ticks*tick).Sub(now), func() {
		l.en.s.mu.Lock()
		defer l.en.s.mu.Unlock()
		if l.en.s.closed || l.count != t {
			return
		}
		l.count = nil
		l.en.leave(l.leader)
		l.en.reconsider()
	})
	l.count = t
}

// losesQuorum returns the time from which on the leader believes in too few
// followers, and whether it comes to that.
func (l *leadership) losesQuorum() (time.Time, bool) {
	believed := 0
	for _, e := range l.en.endpoints {
		if _, silent := l.silent[e]; l.has(e) && !silent {
			believed++
		}
	}
	since := slices.SortedFunc(maps.Values(l.silent), time.Time.Compare)
	for i := len(since) - 1; i >= 0; i-- { // the latest silence lasts for longest
		if l.en.isMajority(believed + len(since) - i) {
			return since[i].Add(l.en.patience()), !l.en.isMajority(believed)
		}
	}
	return time.Now().Add(1), !l.en.isMajority(believed)
}

// commits reports whether the server of c has a leader that commits.
func (c *conn) commits() bool {
	l := c.leadership()
	return l != nil && !l.deposed
}

// leads reports whether c is connected to the leader itself.
func (c *conn) leads() bool { return !c.rep.alone && c.ep.in != nil && c.ep.in.leader == c.ep }

// leadership returns the leadership whose leader the server of c can ask, or nil if it
// can ask no leader.
func (c *conn) leadership() *leadership {
	if c.rep.alone || c.ep.cutOff {
		return nil
	}
	return c.ep.in
}
