package simulation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A tally has the results of all seeds.
type tally struct {
	mu             sync.Mutex
	next           int
	seeds, same    int
	progress, lost map[string]int
	frames         int
	took           time.Duration
	failed         []*plan
	firstAt        int // number of seeds until the first failure
	outcomes       []*outcome
	slowest        time.Duration
	slowestSeed    uint64
}

// maxFailures is the number of failed seeds after which no more seeds are tried.
const maxFailures = 3

// draw returns the number of the next seed; ok is false if enough seeds have run.
func (a *tally) draw() (n int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next >= *simSeeds || len(a.failed) >= maxFailures || *simBrief && len(a.failed) > 0 {
		return 0, false
	}
	a.next++
	return a.next - 1, true
}

// one runs one plan and counts its result.
func (a *tally) one(t *testing.T, p *plan) {
	begun := time.Now()
	out := simulate(t, p)
	cost := time.Since(begun)
	same := *simTwice && simulate(t, p).hash == out.hash
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seeds++
	if same {
		a.same++
	}
	a.progress[p.workload.name] += out.progress
	a.lost[p.workload.name] += out.lost
	a.frames += out.frames
	a.took += out.took
	if cost > a.slowest {
		a.slowest, a.slowestSeed = cost, p.seed
	}
	if len(out.wrong) > 0 {
		if len(a.failed) == 0 {
			a.firstAt = a.seeds
		}
		a.failed, a.outcomes = append(a.failed, p), append(a.outcomes, out)
	}
}

func (a *tally) report(t *testing.T, from []*workload, took time.Duration) {
	n := max(1, a.seeds)
	t.Logf("%d seeds in %v, %v each; %d frames and %v of the bubbles' time a seed; the slowest was seed %d with %v",
		a.seeds, took.Round(time.Millisecond), (took / time.Duration(n)).Round(time.Microsecond),
		a.frames/n, (a.took / time.Duration(n)).Round(time.Millisecond), a.slowestSeed, a.slowest.Round(time.Millisecond))
	if *simTwice {
		t.Logf("%d of %d seeds went the same way twice", a.same, a.seeds)
	}
	for _, w := range from {
		t.Logf("%-16s %6d actions, %d holds lost", w.name, a.progress[w.name], a.lost[w.name])
	}
	if len(a.failed) > 0 {
		t.Logf("failed at seed number %d, with %s", a.firstAt, a.failed[0].workload.name)
	}
	if *simBrief && len(a.failed) > 0 {
		t.Fatalf("seed %d: %s", a.failed[0].seed, a.outcomes[0].wrong[0])
	}
	for i, p := range a.failed {
		explain(t, p, a.outcomes[i])
	}
}

// explain reports a failed seed: the frequency of the failure, and a smallest plan that still
// fails.
func explain(t *testing.T, p *plan, out *outcome) {
	runs := *simRuns
	t.Errorf("seed %d fails; to see it again: go test ./zksynctest/simulation -run Simulation -seed %d -seeds 1\n%s", p.seed, p.seed, lines(out.wrong))
	if runs == 0 {
		return
	}
	failed, ran, _ := hits(t, p, runs, runs)
	t.Logf("seed %d has failed in %d of %d more runs", p.seed, failed, ran)
	size := p.size()
	// Each candidate runs often enough that it probably fails if it still can fail.
	tries := runs
	if failed > 0 {
		tries = min(runs, 1+5*ran/failed)
	}
	p, out = shrink(t, p, out, tries)
	t.Logf("%d faults and actions are left of %d; they end so:\n%s\n%v", p.size(), size, lines(out.wrong), p)
	t.Logf("what happened:\n%s", lines(out.said))
	t.Logf("what the server was asked:\n%s", lines(asked(out)))
	t.Logf("the server's tree:\n%s", out.dump)
	for _, o := range out.objects {
		draw(t, p, o)
	}
}

// asked returns the requests as text.
func asked(out *outcome) (all []string) {
	for _, op := range out.ops {
		line := fmt.Sprintf("%10.6f: session %x, connection %d, %v %s", op.Time.Sub(out.begun).Seconds(), op.Session&0xffff, op.Conn, op.Code, op.Path)
		for _, sub := range op.Sub {
			line += fmt.Sprintf(" [%v %s %d]", sub.Code, sub.Path, sub.Err)
		}
		all = append(all, fmt.Sprintf("%s: zxid %d, error %d", line, op.Zxid, op.Err))
	}
	const most = 300
	if len(all) > most {
		all = append([]string{fmt.Sprintf("(%d before these)", len(all)-most)}, all[len(all)-most:]...)
	}
	return all
}

// draw writes porcupine's picture of a history that does not match its model.
func draw(t *testing.T, p *plan, o *object) {
	if len(o.history.ops) == 0 {
		return // porcupine panics without operations
	}
	result, info := porcupine.CheckOperationsVerbose(o.model, o.history.ops, 10*time.Second)
	if result == porcupine.Ok {
		return
	}
	dir, err := os.MkdirTemp("", "zksync-simulation-")
	name := filepath.Join(dir, fmt.Sprintf("seed-%d-%s.html", p.seed, o.name))
	if err == nil {
		err = porcupine.VisualizePath(o.model, info, name)
	}
	if err != nil {
		t.Logf("no picture of the history: %v", err)
		return
	}
	t.Logf("a picture of the history of %s: %s", o.name, name)
}
