package enumeration_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// An engine enumerates cases and runs them on all processors.
type engine struct {
	settings       []setting
	faults         []*fault
	singles, pairs int  // number of cases, or all
	part, parts    int  // which part of the cases of two faults runs, if all are wanted
	allPairs       bool // pairs of faults in every scenario, and not only where scenario.pairs says so
	report         bool // the outcomes are for a report

	traces map[setting]*outcome // outcomes of the runs without faults
	list   []faultCase          // all cases with one fault
	tally  tally
	after  sync.Map // by case: the frames after its fault

	workers workers
}

// try runs a case, and runs it again if its frames did not come: if goroutines are woken at the
// same instant, the scheduler decides which of them sends first.
func (e *engine) try(t *testing.T, c faultCase) (out *outcome) {
	defer e.workers.begin(c)()
	for range 10 {
		out = run(t, c, e.traces[c.setting], e.report)
		if out.struck == len(c.strikes) || len(out.wrong) > 0 {
			break
		}
	}
	return out
}

// traceAll runs every setting without faults, and lists its cases.
func (e *engine) traceAll(t *testing.T) {
	e.traces = make(map[setting]*outcome)
	for _, s := range e.settings {
		trace := e.try(t, faultCase{setting: s})
		e.tally.traced(trace)
		e.traces[s] = trace
		if len(trace.wrong) > 0 {
			continue // its cases would only fail in the same way
		}
		e.list = append(e.list, e.cases(faultCase{setting: s}, trace.frames, func(*fault) bool { return true })...)
	}
}

// cases returns the cases that add one of the selected faults to a case, at one of the frames.
func (e *engine) cases(c faultCase, frames []network.Frame, some func(*fault) bool) (list []faultCase) {
	for _, frame := range frames {
		for _, f := range e.faults {
			if !some(f) || f.fits != nil && !f.fits(frame) || f.in != nil && !f.in(c.scenario) || c.world.lacks(f) {
				continue
			}
			list = append(list, c.with(strike{frame.Address, f}))
		}
	}
	return list
}

// runSingles runs the cases of one fault, or a sample.
func (e *engine) runSingles(t *testing.T) {
	list := e.list
	if e.singles != all && e.singles < len(list) {
		list = nil
		r := rand.New(rand.NewPCG(*sampleFlag, 1))
		for _, i := range r.Perm(len(e.list))[:e.singles] {
			list = append(list, e.list[i])
		}
	}
	var next atomic.Int64
	e.workers.run(t, "singles", func(t *testing.T) {
		for !e.tally.enough() {
			i := int(next.Add(1)) - 1
			if i >= len(list) {
				return
			}
			e.tally.add(e.try(t, list[i]))
		}
	})
}

// runPairs runs the cases of two faults, or a sample.
func (e *engine) runPairs(t *testing.T) {
	var firsts []faultCase
	for _, c := range e.list {
		if (c.scenario.pairs || e.allPairs) && !e.opening(c) {
			firsts = append(firsts, c)
		}
	}
	if e.pairs == all {
		firsts = everyNth(firsts, e.part-1, e.parts) // each part has cases of every scenario
	}
	if len(firsts) == 0 || e.pairs == 0 {
		return
	}
	var next atomic.Int64
	e.workers.run(t, "pairs", func(t *testing.T) {
		for !e.tally.enough() {
			i := int(next.Add(1)) - 1
			switch {
			case e.pairs == all && i < len(firsts):
				for _, c := range e.seconds(t, firsts[i]) {
					if !e.tally.enough() {
						e.tally.add(e.try(t, c))
					}
				}
			case e.pairs != all && i < e.pairs:
				r := rand.New(rand.NewPCG(*sampleFlag, uint64(2+i)))
				if list := e.seconds(t, firsts[r.IntN(len(firsts))]); len(list) > 0 {
					e.tally.add(e.try(t, list[r.IntN(len(list))]))
				}
			default:
				return
			}
		}
	})
}

// everyNth returns each nth case, from the one at an index on.
func everyNth(list []faultCase, from, n int) (some []faultCase) {
	for i := from; i < len(list); i += n {
		some = append(some, list[i])
	}
	return some
}

// opening reports whether the fault of a case strikes the first handshake of a client in a scenario
// that does not test handshakes.
func (e *engine) opening(c faultCase) bool {
	at := c.strikes[0].at
	return !c.scenario.connects && at.Conn == 1 && at.Index <= 2
}

// seconds returns the cases that add a second fault to a case with one fault, at a frame after the
// first fault.
func (e *engine) seconds(t *testing.T, first faultCase) []faultCase {
	list := e.cases(first, e.behind(t, first), func(f *fault) bool { return !f.leads && !f.alone })
	if first.leader() >= 0 {
		return list
	}
	// If a client is connected to the leader, other frames follow the first fault.
	for client := range first.scenario.clients {
		led := first
		led.leads = 1 + client
		frames := slices.DeleteFunc(e.behind(t, led), func(f network.Frame) bool { return f.Client != client })
		list = append(list, e.cases(first, frames, func(f *fault) bool { return f.leads })...)
	}
	return list
}

// behind returns the frames after the fault of a case.
func (e *engine) behind(t *testing.T, first faultCase) []network.Frame {
	key := fmt.Sprint(first, first.leads)
	if known, ok := e.after.Load(key); ok {
		return slices.Clone(known.([]network.Frame))
	}
	out := e.try(t, first)
	// A delayed frame is recorded when it arrives.
	frames := slices.DeleteFunc(out.frames, func(f network.Frame) bool { return !f.At.After(out.last) })
	if out.struck == 0 || len(out.wrong) > 0 {
		frames = nil // the failure was reported before
	}
	if e.pairs != all {
		e.after.Store(key, slices.Clone(frames))
	}
	return frames
}
