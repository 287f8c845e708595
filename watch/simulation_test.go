package watch_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

var (
	simSeeds = flag.Int("seeds", bounds.Size(50, 150), "how many seeds TestSimulation runs")
	simFrom  = flag.Uint64("seed", 0, "the first seed of TestSimulation")
	simBrief = flag.Bool("brief", false, "TestSimulation ends with the first seed that fails, and says little of it")
)

// A Node, a Children and a Tree show only states that existed, never an older one after a newer one, and equal the
// server at rest, with bounded watches. Node, Children and Tree keep their promises under faults that a seed
// chooses: the invariants of the simulation hold after each of its steps.
func TestSimulation(t *testing.T) {
	begun, failures := time.Now(), 0
	var total simCounts
	for n := range *simSeeds {
		sim := newSimulation(*simFrom + uint64(n))
		sim.run(t)
		total.add(sim.counts)
		if len(sim.wrong) == 0 {
			continue
		}
		failures++
		t.Errorf("seed %d: %s", sim.seed, sim.wrong[0])
		if *simBrief {
			t.Logf("failed at seed number %d, with %s", n+1, "watch")
			break
		}
		t.Logf("all that is wrong:\n  %s\nwhat happened:\n  %s", strings.Join(sim.wrong, "\n  "), strings.Join(sim.said, "\n  "))
		if failures == 3 {
			t.Fatal("three seeds have failed")
		}
	}
	t.Logf("%d seeds in %v: %v", *simSeeds, time.Since(begun).Round(time.Millisecond), total)
}

// simCounts shows that a simulation reached the cases that it is made for.
type simCounts struct {
	changes, faults, struck, sessions, synced, states, lists, events, rests int
}

func (c *simCounts) add(o simCounts) {
	c.changes += o.changes
	c.faults += o.faults
	c.struck += o.struck
	c.sessions += o.sessions
	c.synced += o.synced
	c.states += o.states
	c.lists += o.lists
	c.events += o.events
	c.rests += o.rests
}

func (c simCounts) String() string {
	return fmt.Sprintf("%d changes, %d faults, %d sessions lost; %d states, %d lists, %d events and %d WaitSynced were checked, and %d times everything at rest",
		c.changes, c.faults, c.sessions, c.states, c.lists, c.events, c.synced, c.rests)
}
