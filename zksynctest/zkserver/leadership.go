package zkserver

import (
	"maps"
	"slices"
	"time"
)

// leadership is the term of one leader and the state that this leader knows: its followers and the
// sessions. A leadership begins with an election, and ends when the leader stops or notices that it
// has lost its quorum. A deposed leader continues until it notices: then two leaderships exist, and
// the earlier leadership commits nothing.
type leadership struct {
	en       *ensemble
	leader   *Endpoint
	began    time.Time // pings and counts happen at multiples of a tick after began
	sessions sessionTracker
	// silent maps the followers that the leader hears nothing of to the start of their silence. The
	// leader still counts such a follower until its patience ends.
	silent map[*Endpoint]time.Time
	count  *timer // fires when the leader notices that it has lost its quorum
	ping   *timer // fires when followers report their touches
	// overduePing is set if the leader was frozen at the time of a ping.
	overduePing bool
	// sweepFrom is the time, on the server's clock, of the first sweep of a leader that was frozen.
	// Before this time it does not look for expired sessions.
	sweepFrom int64

	// deposed is set if the leader has lost its quorum for good: its proposals are never committed.
	deposed bool
	// proposed is set if a deposed leader has made a proposal. From then on a follower's sync waits
	// for that proposal, which never commits.
	proposed bool
}

func newLeadership(en *ensemble, leader *Endpoint, now time.Time) *leadership {
	return &leadership{
		en: en, leader: leader, began: now,
		silent:   map[*Endpoint]time.Time{},
		sessions: newSessionTracker(en.s.cfg.TickTime),
	}
}

// stop stops the timers.
func (l *leadership) stop() {
	l.count.stop()
	l.ping.stop()
	l.count, l.ping = nil, nil
}

// has reports whether e belongs to l and has a working connection with the leader.
func (l *leadership) has(e *Endpoint) bool { return e.in == l && !e.cutOff }

// size returns the number of endpoints of l, including the leader.
func (l *leadership) size() int {
	n := 0
	for _, e := range l.en.endpoints {
		if l.has(e) {
			n++
		}
	}
	return n
}

// hush starts the silence between the leader and follower e, because the link is cut or one of the
// two is frozen. When its patience ends, the running side gives up.
func (l *leadership) hush(e *Endpoint) {
	if _, ok := l.silent[e]; !ok {
		l.silent[e] = time.Now()
	}
	if e.doubt == nil {
		l.en.doubtFor(e, l.en.patience())
	}
	l.planCount()
}

// hear ends the silence between the leader and follower e if no cause of it remains.
func (l *leadership) hear(e *Endpoint) {
	if !l.has(e) || e.thaw != nil || l.leader.thaw != nil {
		return
	}
	l.en.certain(e)
	delete(l.silent, e)
	l.planCount()
}

// lose handles a cut of the link between the leader and e. Neither side notices yet.
func (l *leadership) lose(e *Endpoint) {
	if !l.has(e) {
		return
	}
	l.cutOff(e)
	l.hush(e)
	l.check()
}

// cutOff separates follower e from its leader. Follower e does not notice: it answers from the tree
// as of the cut, and loses the touches of sessions.
func (l *leadership) cutOff(e *Endpoint) {
	e.cutOff = true
	l.en.strand(e)
	e.forgetTouches()
}

// drop closes the connection between the leader and endpoint e. The leader no longer counts e; e
// leaves at once if it can notice.
func (l *leadership) drop(e *Endpoint) {
	delete(l.silent, e)
	if e.in == l {
		switch {
		case e.thaw != nil:
			l.en.certain(e)
			l.cutOff(e) // e notices when it resumes
		case l.en.linked(e, l.leader):
			l.en.leave(e)
		}
	}
	l.check()
	l.planCount()
}

// check deposes the leader if too few followers are left to commit. The leader may notice later.
func (l *leadership) check() {
	if l.deposed || l.en.isMajority(l.size()) {
		return
	}
	l.deposed = true
	// A leader that lags catches up first, because it has what it has committed.
	for _, r := range slices.Clone(l.en.replicas) {
		if r.ep == l.leader && !r.cut {
			l.en.awaken(r)
		}
	}
	// The leader and the remaining followers do not notice, and learn of no commit any more.
	for _, e := range l.en.endpoints {
		if l.has(e) {
			l.en.strand(e)
		}
	}
	// The leadership ends after strand, so that the view of the leader includes the beginning of its epoch.
	if l.en.current == l {
		l.en.current = nil
	}
	l.planCount()
}

// expire makes a deposed leader look for expired sessions. The leader proposes the end of each such
// session, which never commits: the sessions stay, and the leader no longer answers them. The
// committing leader has a timer for its expired sessions.
func (l *leadership) expire(now time.Time) {
	at := l.en.s.elapsed(now)
	if !l.deposed || at < l.sweepFrom {
		return
	}
	for _, ts := range l.sessions.expired(at) {
		l.end(ts)
	}
}

// end makes a deposed leader propose the end of a session.
func (l *leadership) end(ts *trackedSession) {
	l.sessions.unlist(ts)
	ts.closing, l.proposed = true, true
}

// planCount sets the timer for the moment at which the leader notices the loss of its quorum, if it
// has lost the quorum. A leader counts its followers once a tick.
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

// losesQuorum returns the time from which on the leader counts too few followers, and whether that
// time comes.
func (l *leadership) losesQuorum() (time.Time, bool) {
	believed := 0
	for _, e := range l.en.endpoints {
		if _, silent := l.silent[e]; l.has(e) && !silent {
			believed++
		}
	}
	since := slices.SortedFunc(maps.Values(l.silent), time.Time.Compare)
	for i := len(since) - 1; i >= 0; i-- { // the latest silence ends last
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

// leadership returns the leadership whose leader the server of c can ask, or nil.
func (c *conn) leadership() *leadership {
	if c.rep.alone || c.ep.cutOff {
		return nil
	}
	return c.ep.in
}
