package session

import "time"

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
		return s.m.jitter.backoff(rounds)
	}
	return 0
}
