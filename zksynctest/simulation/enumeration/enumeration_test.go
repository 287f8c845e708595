package enumeration_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

var (
	casesFlag    = flag.String("cases", bounds.Size("500", "1500"), "how many cases of one fault TestEnumeration samples; all for every case")
	pairsFlag    = flag.String("pairs", "0", "how many cases of two faults TestEnumeration samples; all for every case")
	caseFlag     = flag.String("case", "", "the name of the only case that TestEnumeration runs and reports in full")
	scenarioFlag = flag.String("scenario", "", "the scenarios of TestEnumeration, separated by commas; with a minus before each name, all others; all if empty")
	worldFlag    = flag.String("world", "", "the worlds of TestEnumeration, as with -scenario, or all; if empty, the usual world, and for each scenario one of the others, chosen by -sample")
	faultFlag    = flag.String("fault", "", "the faults of TestEnumeration, as with -scenario")
	partFlag     = flag.String("part", "1/1", "with -pairs all, the part of the cases that TestEnumeration runs: 3/20 for the third of twenty parts")
	sampleFlag   = flag.Uint64("sample", 1, "which sample TestEnumeration takes")
	failuresFlag = flag.Int("failures", 100, "after how many cases that fail TestEnumeration stops")
	briefFlag    = flag.Bool("brief", false, "TestEnumeration stops at the first case that fails, and reports it in one line")
)

// After any single fault at any frame of a scenario, every call has an outcome that
// the documentation allows, no znode or session is left behind, and every lock can be
// acquired again.
func TestEnumeration(t *testing.T) {
	if *caseFlag != "" {
		replay(t, *caseFlag)
		return
	}
	if *briefFlag {
		*failuresFlag = 1
	}
	e := &engine{
		singles: amount(t, "cases", *casesFlag), pairs: amount(t, "pairs", *pairsFlag), allPairs: *scenarioFlag != "",
		settings: settings(t),
		faults:   chosen(t, "fault", *faultFlag, faults, func(f *fault) string { return f.name }),
	}
	e.part, e.parts = part(t, *partFlag)
	begun := time.Now()
	stop := e.workers.guard(func(c faultCase) {
		e.tally.add(&outcome{of: c, struck: len(c.strikes), wrong: []string{fmt.Sprintf("has not ended after %v of processor time or %v: a goroutine spins, or waits for a sync.Mutex", maxProcessorTime, maxRealTime)}})
	}, func() { e.tally.report(printer{}, e, time.Since(begun)) })
	defer stop()
	for _, phase := range []func(*testing.T){e.traceAll, e.runSingles, e.runPairs} {
		if phase(t); e.tally.enough() {
			break
		}
	}
	e.tally.report(t, e, time.Since(begun))
}

// all stands for every case.
const all = -1

// amount parses a number of cases.
func amount(t *testing.T, name, value string) int {
	if value == "all" {
		return all
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		t.Fatalf("-%s %s: want a number or all", name, value)
	}
	return n
}

// part parses the number of a part and the number of all parts.
func part(t *testing.T, value string) (number, of int) {
	if _, err := fmt.Sscanf(value, "%d/%d", &number, &of); err != nil || number < 1 || number > of {
		t.Fatalf("-part %s: want two numbers, the first from 1 to the second: 3/20", value)
	}
	return number, of
}

// chosen returns the elements that a flag names. If every name begins with a minus, it returns all
// other elements.
func chosen[T any](t *testing.T, flag, value string, from []T, name func(T) string) []T {
	if value == "" {
		return from
	}
	var some []T
	without := slices.Clone(from)
	for want := range strings.SplitSeq(value, ",") {
		bare, not := strings.CutPrefix(want, "-")
		is := func(v T) bool { return name(v) == bare }
		i := slices.IndexFunc(from, is)
		switch {
		case i < 0:
			t.Fatalf("-%s: there is no %q", flag, bare)
		case not:
			without = slices.DeleteFunc(without, is)
		default:
			some = append(some, from[i])
		}
	}
	if some == nil {
		return without
	}
	return some
}
