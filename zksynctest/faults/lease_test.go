package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A scenario is one fault with its sizes.
type scenario struct {
	name  string
	full  []size
	small time.Duration // T in the small size; smallSize configures the ensemble
	fresh bool          // the scenario changes the servers permanently, so that each run needs new servers
	run   func(*stage) outcome
}

// smallSize configures the ensemble that the scenarios share in their small size. Its syncLimit
// lets a deposed leader answer for longer than T.
var smallSize = size{tick: 500 * time.Millisecond, syncLimit: 8, crowd: 500}

// Default ticks and timeouts, as in zoo_sample.cfg and session.WithTimeout.
var defaults = size{tick: 2 * time.Second, timeout: 10 * time.Second}

// scenarios are grouped: in their small size the scenarios of a group run one after the other on
// one ensemble.
var scenarios = [][]scenario{
	{
		{name: "leader deposed by restart", full: []size{defaults, {tick: 3 * time.Second, timeout: 15 * time.Second}}, small: 2 * time.Second, run: deposedByRestart},
		{name: "leader paused for T, client on a follower", full: pausedSizes, small: time.Second, run: pausedLeader(onFollower, 1, atResume)},
	},
	{
		{name: "leader deposed by reset", full: []size{defaults}, small: 2 * time.Second, run: deposedByReset},
		{name: "idle session, follower cut off", full: []size{defaults, {tick: 5 * time.Second, timeout: 10 * time.Second}}, small: time.Second, run: idleCutOff},
	},
	{
		{name: "holder's follower cut off", full: []size{defaults}, small: 2 * time.Second, run: holderCutOff},
		// The last scenario of its group, because it changes the servers.
		{name: "timeout lowered by a restart", full: loweredSizes, small: 4 * time.Second, fresh: true, run: loweredTimeout(false)},
	},
}

// inFull has variations that run only in their full size.
var inFull = []scenario{
	{name: "timeout lowered by a restart of the leader", full: loweredSizes, fresh: true, run: loweredTimeout(true)},
	{name: "leader paused for T, client on it", full: pausedSizes[:1], run: pausedLeader(onLeader, 1, atResume)},
	{name: "leader paused for T, client held before", full: pausedSizes[:1], run: pausedLeader(onFollower, 1, againAtResume)},
	{name: "leader paused for T, Lock under way", full: pausedSizes, run: pausedLeader(onFollower, 1, underWay)},
	{name: "leader paused for T, Lock under way on it", full: pausedSizes[:1], run: pausedLeader(onLeader, 1, underWay)},
	{name: "leader paused for a quarter of T, client on it", full: pausedSizes[:1], run: pausedLeader(onLeader, 0.25, atResume)},
	{name: "leader paused for a quarter of T, client on a follower", full: pausedSizes[:1], run: pausedLeader(onFollower, 0.25, atResume)},
	{name: "leader paused for 2T, client on it", full: pausedSizes[:1], run: pausedLeader(onLeader, 2, atResume)},
	{name: "leader paused for 2T, client on a follower", full: pausedSizes[:1], run: pausedLeader(onFollower, 2, atResume)},
	{name: "leader paused for 2T, Lock under way", full: pausedSizes[:1], run: pausedLeader(onFollower, 2, underWay)},
}

// While the context of a hold lives, no other client holds the lock, under any of the faults of a real
// ensemble.
func TestLease(t *testing.T) {
	t.Parallel()
	t.Logf("-seed %d", *seed)
	if *runs == 0 {
		// The plain run has the group with the faults that need the fewest elections.
		groups := bounds.Size(scenarios[1:2], scenarios)
		if left := len(scenarios) - len(groups); left > 0 {
			t.Logf("%s=1 runs %d more groups of scenarios, as make test-real and .ci/run do", bounds.LongEnv, left)
		}
		for i, group := range groups {
			t.Run(fmt.Sprint("ensemble ", i+1), func(t *testing.T) { runSmall(t, group) })
		}
		return
	}
	for _, sc := range slices.Concat(append(scenarios, inFull)...) {
		t.Run(sc.name, func(t *testing.T) { runFull(t, sc) })
	}
}

// runSmall runs each scenario of a group once, one after the other, on one ensemble.
func runSmall(t *testing.T, group []scenario) {
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 3, smallSize.options()...)
	for i, sc := range group {
		size := smallSize
		size.timeout = sc.small
		t.Run(sc.name, func(t *testing.T) {
			results.add(sc.name, size, newStage(t, e, size, i).perform(sc))
		})
	}
}

// runFull runs a scenario -runs times in each of its sizes.
func runFull(t *testing.T, sc scenario) {
	t.Parallel()
	sizes := sc.full
	if *tick != 0 && *timeout != 0 {
		sizes = []size{{tick: *tick, timeout: *timeout, syncLimit: sizes[0].syncLimit, crowd: sizes[0].crowd}}
	}
	for _, size := range sizes {
		if *crowd != 0 {
			size.crowd = *crowd
		}
		t.Run(fmt.Sprintf("tick %v, T %v", size.tick, size.timeout), func(t *testing.T) {
			for lane := range *lanes {
				t.Run(fmt.Sprint("lane ", lane+1), func(t *testing.T) {
					t.Parallel()
					runLane(t, sc, size, lane)
				})
			}
		})
	}
}

// runLane makes the runs of one lane, on its own ensemble. It stops after an incomplete run,
// because the servers are then in an unknown state.
func runLane(t *testing.T, sc scenario, size size, lane int) {
	var e *zksynctest.Ensemble
	if !sc.fresh {
		e = zksynctest.RealZooKeeper(t, 3, size.options()...)
	}
	for n, ended := lane, true; n < *runs && ended; n += *lanes {
		ended = false
		t.Run(fmt.Sprint("run ", n+1), func(t *testing.T) {
			e := e
			if sc.fresh {
				e = zksynctest.RealZooKeeper(t, 3, size.options()...)
			}
			results.add(sc.name, size, newStage(t, e, size, n).perform(sc))
			ended = true
		})
	}
}
