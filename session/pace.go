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
// do not reconnect all at once.
type jitter struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

// seed makes later random numbers depend only on a session's id.
func (j *jitter) seed(id int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// No other client has the id. A simulation can be run again: if the servers behave the
	// same and give the same ids, the pauses are the same.
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

// attempts counts the attempts of a session to connect, for the pauses between them.
type attempts struct {
	mu       sync.Mutex
	failures int // failed attempts in a row
	offline  int // failures since a connection was put to use; the next session continues with them
	short    int // connections in a row that ended soon after they were put to use
	attached time.Time
}

// shortPerRound is the number of short connections that lengthen the pauses by a round.
const shortPerRound = 8

// rounds returns how often every server has failed.
func (a *attempts) rounds(servers int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failures / servers
}

// failed records an attempt without a connection.
func (a *attempts) failed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures++
	a.offline++
}

// established records that a connection has proven that it reaches the leader.
func (a *attempts) established() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attached, a.offline = time.Now(), 0
}

// answered records that a server has answered that the session is over.
func (a *attempts) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	// The server asks the leader for this answer, so the outage has ended, and the next
	// session begins without a pause.
	a.offline = 0
}

// broken records the end of a connection.
func (a *attempts) broken(servers int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.attached.IsZero():
		a.failures++
		a.offline++
	case time.Since(a.attached) < maxBackoff:
		// A server that accepts connections and closes them must not be flooded with
		// dials. A server that was restarted must be used again soon. So the pauses grow
		// to a second only after dozens of such connections.
		a.short++
		a.failures = min(a.failures+1, (2+a.short/shortPerRound)*servers)
	default:
		a.failures, a.short = 0, 0
	}
	a.attached = time.Time{}
}

// goOn makes the attempts of a new session continue with the pauses of the former session.
func (a *attempts) goOn(before *attempts) {
	before.mu.Lock()
	defer before.mu.Unlock()
	// While no server can be used, the end of a session is no reason to try all servers
	// at once.
	a.failures, a.offline = before.offline, before.offline
}
