package enumeration_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A tally counts the results of the cases.
type tally struct {
	mu      sync.Mutex
	frames  int
	ran     [3]int      // by the number of faults
	missed  int         // the frame did not come
	missing []faultCase // examples of these
	struck  map[*fault]int
	void    map[*fault]int // the fault had no effect
	failed  []*outcome
	firstAt int // number of the first case that failed
	took    time.Duration
	setting map[setting]*[3]int // cases by the number of faults
}

// traced counts a run without faults.
func (a *tally) traced(out *outcome) {
	a.mu.Lock()
	a.frames += len(out.frames)
	a.mu.Unlock()
	a.add(out)
}

// add counts a case.
func (a *tally) add(out *outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.struck == nil {
		a.struck, a.void, a.setting = make(map[*fault]int), make(map[*fault]int), make(map[setting]*[3]int)
	}
	n := len(out.of.strikes)
	a.ran[n]++
	if a.setting[out.of.setting] == nil {
		a.setting[out.of.setting] = new([3]int)
	}
	a.setting[out.of.setting][n]++
	a.took += out.took
	for _, k := range out.of.strikes {
		switch {
		case out.struck < n:
			a.missed++
			if a.missed <= 10 {
				a.missing = append(a.missing, out.of)
			}
		case out.nothing != "":
			a.void[k.fault]++
		default:
			a.struck[k.fault]++
		}
	}
	if len(out.wrong) > 0 {
		if len(a.failed) == 0 {
			a.firstAt = a.ran[1] + a.ran[2]
		}
		a.failed = append(a.failed, out)
	}
}

// enough reports whether enough cases have failed to stop the run.
func (a *tally) enough() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.failed) >= *failuresFlag
}

// A reporter prints a report: a test or a printer.
type reporter interface {
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	FailNow()
}

// report prints the tried cases and the failures.
func (a *tally) report(t reporter, e *engine, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	cases := a.ran[1] + a.ran[2]
	t.Logf("%d scenarios in %d worlds with %d frames; %d cases of one fault and %d of two in %v, %v each; %v of the bubbles' time a case",
		len(e.scenarios()), len(e.worlds()), a.frames, a.ran[1], a.ran[2], took.Round(time.Millisecond),
		(took / time.Duration(max(1, cases))).Round(time.Microsecond), (a.took / time.Duration(max(1, cases))).Round(time.Millisecond))
	if a.missed > 0 {
		t.Logf("%d faults did not strike, because their frames did not come, as %v", a.missed, a.missing)
	}
	for _, w := range e.worlds() {
		a.count(t, e, w.name+", a world", func(s setting) bool { return s.world == w })
	}
	for _, c := range e.scenarios() {
		a.count(t, e, c.name, func(s setting) bool { return s.scenario == c })
	}
	for _, f := range e.faults {
		t.Logf("%-24s struck %7d times, and %d times found nothing to harm", f.name, a.struck[f], a.void[f])
	}
	if len(a.failed) == 0 {
		return
	}
	slices.SortStableFunc(a.failed, smallerFirst)
	first := a.failed[0]
	if *briefFlag {
		fmt.Printf("failed at case number %d: %v: %s\n", a.firstAt, first.of, first.wrong[0])
		t.FailNow()
	}
	t.Errorf("%d cases failed; the smallest is\n  %v\nto see it: go test ./zksynctest/simulation/enumeration -v -run Enumeration -case %v", len(a.failed), first.of, first.of)
	a.group(t)
}

// count prints the number of the cases in some settings.
func (a *tally) count(t reporter, e *engine, what string, in func(s setting) bool) {
	frames, ran := 0, [3]int{}
	for _, s := range e.settings {
		if in(s) {
			frames += len(e.traces[s].frames)
			for i, n := range a.setting[s] {
				ran[i] += n
			}
		}
	}
	t.Logf("%-24s %4d frames, %6d cases of one fault, %7d of two", what, frames, ran[1], ran[2])
}

// smallerFirst orders cases by the number of their faults, then by their frames.
func smallerFirst(a, b *outcome) int {
	if d := len(a.of.strikes) - len(b.of.strikes); d != 0 {
		return d
	}
	if d := slices.Index(worlds, a.of.world) - slices.Index(worlds, b.of.world); d != 0 {
		return d
	}
	if d := slices.Index(scenarios, a.of.scenario) - slices.Index(scenarios, b.of.scenario); d != 0 {
		return d
	}
	for i, k := range a.of.strikes {
		o := b.of.strikes[i]
		if d := k.at.Conn - o.at.Conn; d != 0 {
			return d
		}
		if d := k.at.Index - o.at.Index; d != 0 {
			return d
		}
	}
	return strings.Compare(a.of.String(), b.of.String())
}

// byFault counts outcomes by their faults.
func byFault(outs []*outcome) string {
	count := make(map[string]int)
	for _, out := range outs {
		for _, k := range out.of.strikes {
			count[k.fault.name]++
		}
	}
	var parts []string
	for _, f := range faults {
		if n := count[f.name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, f.name))
		}
	}
	return strings.Join(parts, ", ")
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+(\.[0-9]+)?`)

// group prints the cases that have failed in the same way together.
func (a *tally) group(t reporter) {
	var order []string
	same := make(map[string][]*outcome)
	for _, out := range a.failed {
		first, _, _ := strings.Cut(out.wrong[0], "\n")
		key := numbers.ReplaceAllString(first, "#")
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], out)
	}
	slices.SortStableFunc(order, func(x, y string) int { return len(same[y]) - len(same[x]) })
	for _, key := range order {
		outs := same[key]
		var names []string
		for _, out := range outs[:min(4, len(outs))] {
			names = append(names, out.of.String())
		}
		t.Logf("%d cases, %s: %s\n    %s", len(outs), byFault(outs), outs[0].wrong[0], strings.Join(names, "\n    "))
	}
}
