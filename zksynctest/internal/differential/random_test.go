package differential

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

const (
	// countEnv sets the number of random sequences, and seedEnv the first seed.
	countEnv, seedEnv = "ZKSYNC_DIFF_SEQUENCES", "ZKSYNC_DIFF_SEED"
	// pairs is the number of sequences that run at the same time. Each sequence has its own
	// servers, so that no other requests change their zxids.
	pairs = 2
	// enough is the number of failures after which the test stops.
	enough = 5
)

// defaultCount takes some seconds; .ci/run has a section with 5,000 sequences.
var defaultCount = bounds.Size(100, 250)

// Random requests have the same results, error codes, zxids, Stats and events, in the same order, as on a
// real server.
func TestRandomSequences(t *testing.T) {
	t.Parallel()
	count, seed := number(t, countEnv, defaultCount), number(t, seedEnv, 1)
	var (
		next, failures, lines atomic.Int64
		mu                    sync.Mutex
		excused               = map[string]int{}
		differences           []string
		wg                    sync.WaitGroup
	)
	// Behind the output of the servers, which is long.
	t.Cleanup(func() { t.Log("differences:", differences) })
	start := time.Now()
	for range pairs {
		p := newPair(t)
		wg.Go(func() {
			for n := next.Add(1); n <= int64(count) && failures.Load() < enough; n = next.Add(1) {
				steps, err := parse(strings.Join(sequence(uint64(seed), uint64(n)), "\n"))
				if err != nil {
					t.Errorf("the generator does not know the language: %v", err)
					return
				}
				lines.Add(int64(len(steps)))
				v, ok := p.try(t, steps)
				if !ok {
					failures.Add(1)
					mu.Lock()
					differences = append(differences, p.difference)
					mu.Unlock()
					t.Errorf("that was sequence %d of %s=%d", n, seedEnv, seed)
				}
				if v != nil {
					mu.Lock()
					excused[v.name]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	t.Logf("%d sequences of %d lines on average, in %v; compared to their end with Compat38 only: %v",
		count, lines.Load()/int64(max(1, count)), took.Round(time.Millisecond), excused)
}
