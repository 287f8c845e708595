package zkserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// thawGrace is how long a server that was frozen handles what had piled up before it
// learns that the others gave it up, and closes connections for their silence.
const thawGrace = 50 * time.Millisecond

// ThawOrder is the order in which a leader that goes on after a freeze does two things
// that race with real servers: it handles the requests that have piled up, and it
// sweeps, which is to end the sessions whose time is up. Followers report what they
// have heard of sessions only after that, because the leader has to ask them first.
type ThawOrder int

// The orders, from the latest sweep to the earliest. Their effects on sessions at
// followers were all seen with real servers. The sweep of a real leader can also come
// later than the reports of its followers, which save their sessions then.
const (
	// RequestsFirst handles the requests, and sweeps 50 ms later. A transaction that a
	// follower has forwarded is answered, and its session expires all the same, because
	// forwarded requests touch nothing. A client of the leader itself saves its session
	// with a request.
	RequestsFirst ThawOrder = iota
	// RequestsDuringSweep handles the requests when the sweep has picked the sessions
	// whose time is up, 50 ms before it ends them: they are answered, and do not save the
	// sessions of the leader's own clients either.
	RequestsDuringSweep
	// RequestsAfterMark handles the requests when the sweep has also marked these
	// sessions. Their transactions fail with ErrSessionExpired, and so do other requests
	// to the leader itself. Clients that reconnect are refused.
	RequestsAfterMark
	// SweepFirst sweeps before anything else. The connections of sessions whose time is
	// up are closed, and their requests get no answer.
	SweepFirst
)

// String returns the name of the constant.
func (o ThawOrder) String() string {
	switch o {
	case RequestsFirst:
		return "RequestsFirst"
	case RequestsDuringSweep:
		return "RequestsDuringSweep"
	case RequestsAfterMark:
		return "RequestsAfterMark"
	case SweepFirst:
		return "SweepFirst"
	}
	return fmt.Sprintf("ThawOrder(%d)", int(o))
}

// SetThawOrder chooses what leaders do first when they go on after a freeze, from now
// on. At the start it is RequestsFirst. Another value than the constants panics.
func (s *Server) SetThawOrder(o ThawOrder) {
	if o < RequestsFirst || o > SweepFirst {
		panic("zkserver: SetThawOrder: there is no " + o.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thawOrder = o
}

// goOn does what e was kept from while it was frozen. A follower answers the ping of
// its leader at once.
func (l *leadership) goOn(e *Endpoint) {
	s := l.en.s
	now := s.elapsed(time.Now())
	if e != l.leader {
		if e.overdue && l.has(e) && l.leader.thaw == nil {
			l.report(e)
		}
		l.planCount()
		return
	}
	unheard := slices.ContainsFunc(l.en.endpoints, func(e *Endpoint) bool { return e.in == l && e.overdue })
	grace := thawGrace
	switch s.thawOrder {
	case SweepFirst:
		grace = 0
	case RequestsDuringSweep:
		l.sessions.picked = l.sessions.expired(now)
	case RequestsAfterMark:
		l.sessions.picked = l.sessions.expired(now)
		for _, ts := range l.sessions.picked {
			ts.closing = true
		}
	}
	l.sweepFrom = now + grace.Milliseconds()
	if grace == 0 {
		s.sweep(time.Now())
	} else {
		s.setTimer()
	}
	if l.ping == nil && (l.overduePing || unheard) {
		l.pingAfter(grace)
	}
	l.overduePing = false
	l.planCount()
}

// refuseClosing answers a request of a session that the leader is about to end.
func (s *Server) refuseClosing(c *conn, r *jute.Request) result {
	if !r.Op.IsWrite() {
		return result{code: ErrSessionExpired, zxid: s.en.zxidOf(c.rep)}
	}
	t := s.data.Begin(nil, 0, false)
	s.fire(t)
	if r.Op != OpMulti {
		return result{code: ErrSessionExpired, zxid: t.Zxid}
	}
	for i := range r.Subs {
		r.Subs[i].Code = ErrRuntimeInconsistency
		if i == 0 {
			r.Subs[i].Code = ErrSessionExpired
		}
		c.reply = jute.AppendMultiError(c.reply, r.Subs[i].Code)
	}
	c.reply = jute.AppendMultiHeader(c.reply, jute.OpError, true, -1)
	return result{zxid: t.Zxid}
}
