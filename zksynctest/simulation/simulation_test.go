package simulation_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	simSeeds    = flag.Int("seeds", 50, "how many seeds TestSimulation runs")
	simFrom     = flag.Uint64("seed", 0, "the first seed of TestSimulation")
	simWorkload = flag.String("workload", "", "the workloads of TestSimulation, separated by commas; all if empty")
	simRuns     = flag.Int("runs", 100, "how often TestSimulation runs a seed again that has failed; 0 neither does that nor shrinks it")
	simBrief    = flag.Bool("brief", false, "TestSimulation ends with the first seed that fails, and says little of it")
	simTwice    = flag.Bool("twice", false, "TestSimulation runs every seed twice, and tells how many went the same way")
)

var workloads = []*workload{mutexes, rwmutexes, semaphores, elections, gates, doubleBarriers, queues, crowds, mixed, groups}

func chosenWorkloads(t *testing.T) []*workload {
	if *simWorkload == "" {
		return workloads
	}
	var chosen []*workload
	for name := range strings.SplitSeq(*simWorkload, ",") {
		i := slices.IndexFunc(workloads, func(w *workload) bool { return w.name == name })
		if i < 0 {
			t.Fatalf("-workload: there is no %q", name)
		}
		chosen = append(chosen, workloads[i])
	}
	return chosen
}

// Under schedules of faults that a seed chooses, each primitive keeps its promises: no two holders,
// no lost message, no missed opening, and every cancelled call leaves nothing. TestSimulation runs
// workloads under schedules of faults in bubbles, one for each seed, and checks their histories.
// docs/testing.md describes the simulation, and how to reproduce a failure.
func TestSimulation(t *testing.T) {
	from := chosenWorkloads(t)
	all := &tally{progress: map[string]int{}, lost: map[string]int{}}
	begun := time.Now()
	t.Run("workers", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for {
					n, ok := all.draw()
					if !ok {
						return
					}
					all.one(t, newPlan(*simFrom+uint64(n), from))
				}
			})
		}
	})
	all.report(t, from, time.Since(begun))
}

// Without faults no hold is lost, also if a request and its answer take a twentieth of the session timeout.
func TestNoHoldIsLostFarFromTheServers(t *testing.T) {
	for seed := range uint64(80) {
		p := newPlan(seed, []*workload{mutexes, rwmutexes, semaphores, elections})
		p.faults = nil
		for i := range p.distance {
			p.distance[i] = p.timeout() / 40
		}
		if out := simulate(t, p); len(out.wrong) > 0 || out.lost > 0 {
			t.Errorf("seed %d: %d holds were lost, and %q\n%v", seed, out.lost, out.wrong, p)
		}
	}
}
