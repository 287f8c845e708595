package zkserver

import (
	"fmt"
	"time"
)

// thawGrace is the time during which a server that was frozen handles waiting requests. After this
// time it learns that the others have given it up, and closes silent connections.
const thawGrace = 50 * time.Millisecond

// ThawOrder is the order of two actions of a leader that resumes after a freeze, which race in a
// real server: the leader handles the waiting requests, and it sweeps, that is, it ends the expired
// sessions. Followers report their touches only after both actions, because the leader has to ask
// for them first.
type ThawOrder int

// The orders, from the latest sweep to the earliest sweep. All their effects on sessions at
// followers were seen with real servers. The sweep of a real leader can also happen after the
// reports of its followers; the reports then save the sessions.
const (
	// RequestsFirst handles the requests, and sweeps 50 ms later. A transaction that a follower has
	// forwarded is answered, but its session expires, because forwarded requests do not touch the
	// session. A request of a client of the leader itself saves its session.
	RequestsFirst ThawOrder = iota
	// RequestsDuringSweep handles the requests after the sweep has picked the expired sessions, 50
	// ms before the sweep ends them. The requests are answered, but do not save the sessions, not
	// even the sessions of the leader's own clients.
	RequestsDuringSweep
	// RequestsAfterMark handles the requests after the sweep has also marked the picked sessions.
	// Their transactions fail with ErrSessionExpired, and so do other requests to the leader
	// itself. Clients that reconnect are refused.
	RequestsAfterMark
	// SweepFirst sweeps before any other action. The connections of expired sessions are closed,
	// and their requests get no answer.
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
