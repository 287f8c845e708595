package simulation_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A plan has all actions and faults of a simulation. Shrinking removes parts of the plan to find
// the parts that a failure needs.
type plan struct {
	seed     uint64
	workload *workload
	setting  *setting
	session  time.Duration // the timeout
	tick     time.Duration
	reap     time.Duration // interval at which servers remove empty containers
	managers int
	distance []time.Duration // by Manager: the least time of a frame on its way
	clients  [][]action      // by client; a client uses the manager of its number modulo managers
	faults   []fault
}

// An action is one action of a client. Each workload interprets it differently.
type action struct {
	kind     int           // 0 to 99
	pause    time.Duration // before the action
	patience time.Duration // time limit; 0 means no limit
	stay     time.Duration // duration of a hold
	stall    bool          // the holder ignores the context during the hold
	units    int           // 1 to 3
}

const calmAfter = 7 // session timeouts

// timeout returns the timeout of the sessions.
func (p *plan) timeout() time.Duration { return p.session }

// calm returns the time at which the faults end.
func (p *plan) calm() time.Duration { return calmAfter * p.timeout() }

// rnd returns a source of random numbers for one purpose, independent of other purposes.
func (p *plan) rnd(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(p.seed, purpose)) }

const (
	forPlan = iota
	forWorkload
	forEndpoints
	forSetting
	forNumbers
)

// newPlan draws a plan. The same seed gives the same plan. The seed modulo the number of workloads
// selects the workload, so that all workloads occur equally often.
func newPlan(seed uint64, from []*workload) *plan {
	p := &plan{seed: seed, workload: from[seed%uint64(len(from))]}
	r := p.rnd(forPlan)
	p.session = []time.Duration{3 * time.Second, 6 * time.Second}[r.IntN(2)]
	p.tick = p.session / []time.Duration{2, 4, 6, 6, 6, 10, 20}[r.IntN(7)]
	p.reap = []time.Duration{time.Minute, p.session, p.session / 4}[r.IntN(3)]
	p.managers = 2 + r.IntN(3)
	pace := p.timeout() / 12
	clients, actions := p.managers+r.IntN(2*p.managers+1), 4+r.IntN(5)
	if p.workload.small {
		// With more clients than the size of a barrier, few faults have an effect; and with many
		// operations in one history, the model accepts many explanations of the history.
		clients = min(clients, 6)
	}
	if p.workload.crowd {
		p.managers, clients = 1+r.IntN(2), 4+r.IntN(5)
	}
	for range clients {
		var all []action
		for range actions {
			a := action{kind: r.IntN(100), units: 1 + r.IntN(3)}
			a.pause = upTo(r, 2*pace)
			if r.IntN(8) == 0 {
				a.pause = upTo(r, p.timeout())
			}
			if r.IntN(3) == 0 {
				a.patience = upTo(r, 2*p.timeout())
				if r.IntN(2) == 0 {
					a.patience = upTo(r, pace/4)
				}
			}
			switch r.IntN(8) {
			case 0:
				a.stay = upTo(r, 3*p.timeout())
			case 1, 2, 3:
				a.stay = upTo(r, pace)
			default:
				a.stay = upTo(r, pace/20)
			}
			if r.IntN(6) == 0 {
				a.stall = true
				a.stay = upTo(r, 2*p.timeout())
			}
			all = append(all, a)
		}
		p.clients = append(p.clients, all)
	}
	p.faults = drawFaults(r, p)
	p.distance = make([]time.Duration, p.managers)
	if r.IntN(3) == 0 {
		// Behind the others in each race for a version, whatever the order of the frames.
		p.distance[r.IntN(p.managers)] = upTo(r, p.timeout()/200)
	}
	r = p.rnd(forSetting)
	p.setting = drawSetting(r, p.workload)
	p.faults = append(p.faults, drawRefusals(r, p)...)
	slices.SortStableFunc(p.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return p
}

// upTo draws a duration that is not a round number, so that two events rarely happen at the same
// instant.
func upTo(r *rand.Rand, d time.Duration) time.Duration { return 1 + time.Duration(r.Int64N(int64(d))) }

// clone copies the parts of a plan that shrinking changes.
func (p *plan) clone() *plan {
	q := *p
	q.faults = slices.Clone(p.faults)
	q.clients = slices.Clone(p.clients)
	return &q
}

// size returns the number of parts that shrinking can remove.
func (p *plan) size() int {
	n := len(p.faults)
	for _, c := range p.clients {
		n += len(c)
	}
	return n
}

// String returns the plan as text.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: session timeout %v, tick %v, containers reaped every %v, %d managers\n", p.workload.name, p.timeout(), p.tick, p.reap, p.managers)
	fmt.Fprintf(&b, "  setting: %s\n", p.setting.name)
	for i, d := range p.distance {
		if d > 0 {
			fmt.Fprintf(&b, "  frames of manager %d take %v\n", i, d)
		}
	}
	for _, f := range p.faults {
		fmt.Fprintf(&b, "  fault at %-14v %v\n", f.at, f)
	}
	for i, actions := range p.clients {
		if len(actions) > 0 {
			fmt.Fprintf(&b, "  client %d with manager %d:\n", i, i%p.managers)
		}
		for _, a := range actions {
			fmt.Fprintf(&b, "    %v\n", a)
		}
	}
	return b.String()
}

func (a action) String() string {
	s := fmt.Sprintf("kind %d, units %d, after %v, stays %v", a.kind, a.units, a.pause, a.stay)
	if a.stall {
		s += " whatever happens"
	}
	if a.patience > 0 {
		s += fmt.Sprintf(", waits at most %v", a.patience)
	}
	return s
}
