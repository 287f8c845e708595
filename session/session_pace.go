package session

import "time"

// A sessionPace determines the pause before the next session. After a long session there
// is none. After short sessions the pauses grow like the pauses between connections.
type sessionPace struct{ guilt int }

const (
	guiltOfYoung  = 8 // a round of backoff
	guiltOfUseful = 1

	// A session is young for the time of its timeout, within these bounds.
	leastYouth = maxBackoff
	mostYouth  = 30 * time.Second
)

// after returns the pause after the end of s.
func (p *sessionPace) after(s *Session) time.Duration {
	youth := min(max(s.Timeout(), leastYouth), mostYouth)
	switch {
	// The dials of a session that never existed had their own pauses.
	case !s.known.Load() || time.Since(s.opened) >= youth:
		p.guilt = 0
	// Clients that lose their sessions to a storm of restarts must come back soon.
	case s.useful.Load():
		p.guilt += guiltOfUseful
	// A client must not flood a server that ends every session at once.
	default:
		p.guilt += guiltOfYoung
	}
	if rounds := p.guilt / guiltOfYoung; rounds > 0 {
		return s.m.jitter.backoff(rounds)
	}
	return 0
}
