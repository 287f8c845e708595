package zkserver

import (
	"fmt"
	"time"
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
