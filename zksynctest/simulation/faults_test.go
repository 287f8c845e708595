package simulation_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// A fault happens at a time, or at the first matching frame from then on.
type fault struct {
	at      time.Duration
	kind    faultKind
	manager int
	aimed   bool // strikes a Manager that holds something at that time
	ends    bool // the strike ends the session that it hits, by force
	length  time.Duration
	strike  network.Strike
	quits   []int // clients whose calls are cancelled after strike has struck,
	after   time.Duration
}

type faultKind int

const (
	frameFault faultKind = iota // strike describes the fault
	disconnect
	partition
	holdFrames // its frames stop in both directions
	lag
	cutFromLeader
	delayRemoval
	restart
	freeze
	expire
	stopOne // one of the servers
	freezeOne
	lagOne
	cutOne
	stranded       // connected to a server without a leader; no other server can be reached
	staleAfterLoss // all servers lag, and the answer to a transaction is lost
	limp           // it learns of changes only now and then
	limpAll
	suspend      // the whole process of a Manager
	depose       // the leader, which does not notice
	throttle     // requests are refused
	cutBehind    // the server is cut off directly after it has forwarded a request
	errBefore    // requests are answered with an internal error, and not carried out
	errAfter     // writes are carried out, and answered with an internal error
	throttleAll  // all requests of all Managers are refused
	errsOfAll    // all requests are answered with an internal error, and not carried out
	errsOfReads  // all reads are answered with an internal error
	errsOfWrites // all writes are carried out, and answered with an internal error
	quota        // the directories may have no more znodes and bytes than they have
)

func (f fault) String() string {
	who := fmt.Sprint(f.manager)
	if f.aimed {
		who = fmt.Sprintf("who holds, or %d", f.manager)
	}
	if f.kind == frameFault {
		s := fmt.Sprintf("%v, client %s", f.strike, who)
		if f.strike.Client == network.Anyone {
			s = fmt.Sprintf("%v, anyone", f.strike)
		}
		if len(f.quits) > 0 {
			s += fmt.Sprintf("; %v after it %v give up", f.after, f.quits)
		}
		if f.ends {
			s += ", whose session ends by force"
		}
		return s
	}
	return fmt.Sprintf("%s of %s for %v", [...]string{
		"", "disconnect", "partition", "hold", "lag", "cut from the leader", "delay of removals", "restart", "freeze", "expiry by force",
		"stop of a server", "freeze of a server", "lag of a server", "cut of a server",
		"cut from the leader and all other servers", "lag of all servers, and a lost answer", "limp", "limp of all",
		"suspension", "deposition of the leader", "throttling", "cut behind a request", "internal errors before", "internal errors after",
		"throttling of all", "internal errors of all", "internal errors of reads", "internal errors of writes", "quota",
	}[f.kind], who, f.length)
}

// interesting has the types of the requests that primitives make: faults at these requests find the
// most bugs.
var interesting = []int32{0, 0, 14, 14, 14, 2, 1, 12, 9, 4, 3, 5}

const opMulti = 14

// drawFaults draws a schedule. One schedule in three has sessions that are ended by force, against
// which only tokens protect.
func drawFaults(r *rand.Rand, p *plan) []fault {
	forced := r.IntN(3) == 0
	var all []fault
	for range r.IntN(18) {
		f := fault{at: upTo(r, p.calm()), manager: r.IntN(p.managers), length: upTo(r, 2*p.timeout()), aimed: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			f.length = upTo(r, p.timeout()/3)
		}
		switch own := p.workload; {
		case len(own.aims) > 0 && r.IntN(2) == 0:
			f.aimAtRequest(r, p)
		case r.IntN(2) == 0:
			f.strike = drawStrike(r, f)
			if len(own.losses) > 0 && r.IntN(4) > 0 {
				f.lose(r, own.losses)
				f.ends = forced && r.IntN(3) == 0
			}
		case len(own.mishaps) > 0 && r.IntN(2) == 0:
			f.kind = own.mishaps[r.IntN(len(own.mishaps))]
		default:
			f.kind = mishaps[r.IntN(len(mishaps))]
		}
		if f.kind == expire && !forced {
			f.kind = partition
		}
		if f.aimed && r.IntN(2) == 0 {
			f.length += p.timeout() // long enough for the holder to lose its hold
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return all
}

// mishaps has the kinds of faults, repeated according to their frequency.
var mishaps = []faultKind{
	disconnect, partition, partition, partition, holdFrames, holdFrames, lag, cutFromLeader, cutFromLeader, delayRemoval, delayRemoval, restart, freeze, expire, expire,
	stopOne, stopOne, freezeOne, lagOne, lagOne, cutOne, cutOne, stranded, stranded, stranded, staleAfterLoss, staleAfterLoss, staleAfterLoss,
	suspend, suspend, depose, depose, throttle, throttle, cutBehind, cutBehind,
}

// refusals has the kinds of faults in which the servers refuse requests, repeated according to their frequency.
var refusals = []faultKind{errBefore, errBefore, errAfter, errAfter, quota, quota, throttleAll, errsOfAll, errsOfReads, errsOfWrites}

// drawRefusals draws faults in which the servers refuse requests, for one plan in four.
func drawRefusals(r *rand.Rand, p *plan) (all []fault) {
	if r.IntN(4) > 0 {
		return nil
	}
	for range 1 + r.IntN(3) {
		all = append(all, fault{at: upTo(r, p.calm()), kind: refusals[r.IntN(len(refusals))],
			manager: r.IntN(p.managers), aimed: r.IntN(2) == 0, length: upTo(r, p.timeout()/2)})
	}
	return all
}

func drawStrike(r *rand.Rand, f fault) network.Strike {
	s := network.Strike{Client: f.manager, Nth: 1 + r.IntN(4), For: f.length}
	s.Do = []network.Effect{network.Reset, network.Reset, network.ResetAfter, network.ResetAfter, network.Lose, network.Stall, network.Swallow}[r.IntN(7)]
	if s.Dir = network.Direction(r.IntN(2)); s.Dir == network.Up {
		s.Op = interesting[r.IntN(len(interesting))]
		if s.Do == network.Lose {
			s.Do = network.Reset // a server that receives a request has received the requests before it
		}
	}
	return s
}

// aimAtRequest makes f strike one of the relevant requests, of any client. Usually f delays the
// request while the calls of some clients are cancelled. The state that caused the request may then
// have changed.
func (f *fault) aimAtRequest(r *rand.Rand, p *plan) {
	f.strike = p.workload.aims[r.IntN(len(p.workload.aims))]
	s := &f.strike
	s.Client, s.Nth, s.For = network.Anyone, 1+r.IntN(2), f.length
	s.Do = []network.Effect{network.Stall, network.Stall, network.Stall, network.Stall, network.Reset, network.ResetAfter}[r.IntN(6)]
	if r.IntN(2) == 0 { // shorter than the time after which another client takes over
		s.For = upTo(r, p.timeout()/20)
	}
	f.after = upTo(r, s.For)
	for i := range p.clients {
		if r.IntN(2) == 0 {
			f.quits = append(f.quits, i)
		}
	}
}

// lose makes f strike one of the requests of any client, or its answer, usually so that the client
// does not learn the outcome.
func (f *fault) lose(r *rand.Rand, requests []network.Strike) {
	s, aim := &f.strike, requests[r.IntN(len(requests))]
	s.Client, s.Dir, s.Nth = network.Anyone, network.Direction(r.IntN(2)), 1+r.IntN(3)
	s.Op, s.Has, s.And, s.Lacks = aim.Op, aim.Has, aim.And, aim.Lacks
	s.Do = []network.Effect{network.Reset, network.Reset, network.Reset, network.Stall, network.Swallow, network.Swallow, network.ResetAfter, network.Lose}[r.IntN(8)]
	if s.Dir == network.Up && s.Do == network.Lose {
		s.Do = network.Reset // a server that receives a request has received the requests before it
	}
}
