package session

import (
	"fmt"
	"time"
)

// The bounds of a session timeout. Below minTimeout a session is over before a
// request and its answer have crossed a network. A session with a longer timeout than
// maxTimeout is treated as if maxTimeout had been granted, which is the cautious side.
const (
	minTimeout = 100 * time.Millisecond
	maxTimeout = 24 * time.Hour
)

// A timeoutError is a grant of a session timeout that is too short.
type timeoutError struct{ granted, asked time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the server granted a session timeout of %v, where %v were asked for and %v is the least", e.granted, e.asked, minTimeout)
}

func (e *timeoutError) hint() string {
	if e.asked < minTimeout {
		return "ask for more with session.WithTimeout"
	}
	return "raise maxSessionTimeout (20 ticks by default) of the server"
}

// A sessionPace decides on the pause before the next session. There is none after a
// session that lived. Sessions that end young have pauses that grow like those between
// connections: a server that ends every session at once would be asked for new ones
// as fast as it can give them. A young session that has answered a caller counts an
// eighth, because clients that lose their sessions to a storm of restarts must not be
// slow to come back.
type sessionPace struct{ guilt int }

const (
	guiltOfYoung  = 8 // a round of backoff
	guiltOfUseful = 1

	// A session is young for its timeout, but within these bounds.
	leastYouth = maxBackoff
	mostYouth  = 30 * time.Second
)

// after returns the pause behind s, which has ended.
func (p *sessionPace) after(s *Session) time.Duration {
	youth := min(max(s.Timeout(), leastYouth), mostYouth)
	switch {
	case !s.known.Load() || time.Since(s.opened) >= youth:
		p.guilt = 0
	case s.useful.Load():
		p.guilt += guiltOfUseful
	default:
		p.guilt += guiltOfYoung
	}
	if rounds := p.guilt / guiltOfYoung; rounds > 0 {
		return s.m.jitter.spread(backoff(rounds, firstBackoff, maxBackoff))
	}
	return 0
}
