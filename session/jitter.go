package session

import (
	"math/rand/v2"
	"sync"
	"time"
)

// The bounds of pauses between attempts.
const (
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
)

// A jitter spreads the pauses of a Manager, so that the clients of a server that
// died do not come back all at once. From its first session on it draws from that
// one's id, which no other client has: so where servers give the same ids and do the
// same, a Manager does the same, and a simulation can be run again.
type jitter struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

// seed makes what is drawn from now on depend on a session's id alone.
func (j *jitter) seed(id int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rnd = rand.New(rand.NewPCG(uint64(id), 0))
}

// spread spreads d over a half to one and a half of it.
func (j *jitter) spread(d time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rnd == nil {
		return d/2 + rand.N(d+1)
	}
	return d/2 + time.Duration(j.rnd.Int64N(int64(d)+1))
}

// backoff returns the pause before the attempt after round failed ones.
func (j *jitter) backoff(round int) time.Duration {
	return j.spread(backoff(round, firstBackoff, maxBackoff))
}

// backoff doubles first with every round, up to limit.
func backoff(round int, first, limit time.Duration) time.Duration {
	return min(first<<min(round-1, 16), limit)
}
