package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// patience bounds every wait for an event that must happen, such as an election on a busy machine.
const patience = time.Minute

// A stage is one run of a scenario, with the timeline of the run.
type stage struct {
	t    *testing.T
	e    *zksynctest.Ensemble
	size size
	n    int        // number of the run, from 0
	r    *rand.Rand // decides when the fault happens

	mu       sync.Mutex
	timeline []entry
}

// An entry is one line of a timeline.
type entry struct {
	at   time.Time
	text string
}

// An outcome has the observations of one run about its two clients.
type outcome struct {
	fault time.Time // when the fault began
	ended time.Time // when A's held context ended; zero if A never held the lock
	next  time.Time // when B got the lock
}

// margin returns the time between A's hold and B's hold. It is negative if both clients held the
// lock.
func (o outcome) margin() time.Duration { return o.next.Sub(o.ended) }

func newStage(t *testing.T, e *zksynctest.Ensemble, size size, n int) *stage {
	return &stage{t: t, e: e, size: size, n: n, r: rand.New(rand.NewPCG(*seed, uint64(n)))}
}

// perform carries out the run, reports it, and heals all links.
func (s *stage) perform(sc scenario) outcome {
	s.t.Helper()
	s.e.WaitReady()
	defer s.e.HealAll()
	o := sc.run(s)
	switch {
	case o.ended.IsZero():
		s.t.Logf("client A held nothing when the fault began\n%s", s.story())
	case o.margin() < 0:
		s.t.Errorf("%s, tick %v, T %v, run %d with -seed %d: client A held the lock until %v after client B got it\n%s",
			sc.name, s.size.tick, s.size.timeout, s.n+1, *seed, -o.margin().Round(time.Millisecond), s.story())
	default:
		s.t.Logf("margin %v\n%s", o.margin().Round(time.Millisecond), s.story())
	}
	return o
}

// note adds a line to the timeline.
func (s *stage) note(at time.Time, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeline = append(s.timeline, entry{at, fmt.Sprintf(format, args...)})
}

// story returns the timeline, with times relative to its first line.
func (s *stage) story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.timeline, func(a, b entry) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, e := range s.timeline {
		fmt.Fprintf(&b, "  %+8.3fs  %s\n", e.at.Sub(s.timeline[0].at).Seconds(), e.text)
	}
	return b.String()
}

// path returns the path of a lock that only this run uses.
func (s *stage) path() string { return fmt.Sprintf("/lease-%d-%d", s.n, s.size.timeout.Milliseconds()) }

// last waits for d while a fault, or the time without a fault, lasts.
func (s *stage) last(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
}

// upTo returns a time between 0 and d.
func (s *stage) upTo(d time.Duration) time.Duration { return time.Duration(s.r.Int64N(int64(d) + 1)) }

// await waits for a value that must arrive, and fails the run otherwise.
func await[V any](s *stage, what string, c <-chan V) V {
	s.t.Helper()
	timer := time.NewTimer(patience + 3*s.size.timeout)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		s.t.Fatalf("%s: not within %v\n%s", what, patience+3*s.size.timeout, s.story())
	}
	panic("unreachable")
}

// makeDirectory lets a client use the lock once, so that the next client that locks it needs only
// the request that joins the line.
func (s *stage) makeDirectory(c *client) {
	s.t.Helper()
	s.held(c.lock())
	if err := c.mu.Unlock(); err != nil {
		s.t.Fatalf("client %s: unlock: %v", c.name, err)
	}
}

// held waits until a client that called lock has the lock.
func (s *stage) held(got <-chan hold) hold {
	s.t.Helper()
	h := await(s, "a client to get the lock", got)
	if h.granted.IsZero() {
		s.t.Fatalf("a client gave up\n%s", s.story())
	}
	return h
}

// until waits for a condition that must become true, and fails the run otherwise.
func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	if !eventually(patience, ok) {
		s.t.Fatalf("%s: not within %v\n%s", what, patience, s.story())
	}
}

// eventually polls until ok returns true, and reports whether it did in time.
func eventually(within time.Duration, ok func() bool) bool {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(within)
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			return ok()
		}
	}
	return true
}
