package session

import (
	"math/rand/v2"
	"sync"
	"time"
)

// The shortest and the longest pause between attempts.
const (
	firstBackoff = 20 * time.Millisecond
	maxBackoff   = time.Second
)

// A jitter randomizes the pauses of a Manager, so that the clients of a server that died
// do not reconnect all at once. The id of the Manager's first session, which no other
// client has, becomes the seed. So a simulation can be run again: if the servers behave
// the same and give the same ids, the pauses are the same.
type jitter struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

// seed makes later random numbers depend only on a session's id.
func (j *jitter) seed(id int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rnd = rand.New(rand.NewPCG(uint64(id), 0))
}

// spread returns a random duration between 0.5 d and 1.5 d.
func (j *jitter) spread(d time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rnd == nil {
		return d/2 + rand.N(d+1)
	}
	return d/2 + time.Duration(j.rnd.Int64N(int64(d)+1))
}

// backoff returns the pause after round failed attempts.
func (j *jitter) backoff(round int) time.Duration {
	return j.spread(backoff(round, firstBackoff, maxBackoff))
}

// backoff doubles first with every round, up to limit.
func backoff(round int, first, limit time.Duration) time.Duration {
	return min(first<<min(round-1, 16), limit)
}
