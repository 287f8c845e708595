package zksync_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/internal/sim"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A fault is one thing that goes wrong, at a time or at the first fitting frame
// from then on.
type fault struct {
	at      time.Duration
	kind    faultKind
	manager int
	aimed   bool // at whoever holds something then, if anybody does
	ends    bool // what the strike hits: the session, by force
	length  time.Duration
	strike  sim.Strike
	quits   []int // the clients that give up what they wait for when strike has struck,
	after   time.Duration
}

type faultKind int

const (
	frameFault faultKind = iota // strike says what
	disconnect
	partition
	holdFrames // its frames neither come nor go
	lag
	cutFromLeader
	delayRemoval
	restart
	freeze
	expire
	stopOne // of the servers
	freezeOne
	lagOne
	cutOne
	stranded       // on a server without a leader, and no other can be reached
	staleAfterLoss // all servers lag, and the answer to a transaction is lost
	limp           // it hears of changes now and then only
	limpAll
)

func (f fault) String() string {
	who := fmt.Sprint(f.manager)
	if f.aimed {
		who = fmt.Sprintf("who holds, or %d", f.manager)
	}
	if f.kind == frameFault {
		s := fmt.Sprintf("%v, client %s", f.strike, who)
		if f.strike.Client == sim.Anyone {
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
	}[f.kind], who, f.length)
}

// interesting are the requests that primitives make, by their type: what
// happens around them is what matters most.
var interesting = []int32{0, 0, 14, 14, 14, 2, 1, 12, 9, 4, 3, 5}

const opMulti = 14

// drawFaults draws a schedule. One in three has sessions that are ended by force,
// from which only tokens protect.
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
			f.length += p.timeout() // long enough for the holder to lose what it holds
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return all
}

// mishaps has the kinds of faults as often as they are to be drawn.
var mishaps = []faultKind{
	disconnect, partition, partition, partition, holdFrames, holdFrames, lag, cutFromLeader, cutFromLeader, delayRemoval, delayRemoval, restart, freeze, expire, expire,
	stopOne, stopOne, freezeOne, lagOne, lagOne, cutOne, cutOne, stranded, stranded, stranded, staleAfterLoss, staleAfterLoss, staleAfterLoss,
}

func drawStrike(r *rand.Rand, f fault) sim.Strike {
	s := sim.Strike{Client: f.manager, Nth: 1 + r.IntN(4), For: f.length}
	s.Do = []sim.Effect{sim.Reset, sim.Reset, sim.ResetAfter, sim.ResetAfter, sim.Lose, sim.Stall, sim.Swallow}[r.IntN(7)]
	if s.Dir = sim.Direction(r.IntN(2)); s.Dir == sim.Up {
		s.Op = interesting[r.IntN(len(interesting))]
		if s.Do == sim.Lose {
			s.Do = sim.Reset // a server that gets a request gets those before it
		}
	}
	return s
}

// aimAtRequest makes f strike one of the requests that matter, whoever sends it,
// and mostly hold it up while some give up: what it was decided by may then be so no
// more.
func (f *fault) aimAtRequest(r *rand.Rand, p *plan) {
	f.strike = p.workload.aims[r.IntN(len(p.workload.aims))]
	s := &f.strike
	s.Client, s.Nth, s.For = sim.Anyone, 1+r.IntN(2), f.length
	s.Do = []sim.Effect{sim.Stall, sim.Stall, sim.Stall, sim.Stall, sim.Reset, sim.ResetAfter}[r.IntN(6)]
	if r.IntN(2) == 0 { // not for so long that somebody else does it
		s.For = upTo(r, p.timeout()/20)
	}
	f.after = upTo(r, s.For)
	for i := range p.clients {
		if r.IntN(2) == 0 {
			f.quits = append(f.quits, i)
		}
	}
}

// lose makes f strike one of the requests or the answer to it, whoever sends it,
// mostly so that nobody learns what came of it.
func (f *fault) lose(r *rand.Rand, requests []sim.Strike) {
	s, aim := &f.strike, requests[r.IntN(len(requests))]
	s.Client, s.Dir, s.Nth = sim.Anyone, sim.Direction(r.IntN(2)), 1+r.IntN(3)
	s.Op, s.Has, s.And, s.Lacks = aim.Op, aim.Has, aim.And, aim.Lacks
	s.Do = []sim.Effect{sim.Reset, sim.Reset, sim.Reset, sim.Stall, sim.Swallow, sim.Swallow, sim.ResetAfter, sim.Lose}[r.IntN(8)]
	if s.Dir == sim.Up && s.Do == sim.Lose {
		s.Do = sim.Reset // a server that gets a request gets those before it
	}
}

// misbehave makes the faults of the plan happen, until calm.
func (w *world) misbehave() {
	start := time.Now()
	for _, f := range w.plan.faults {
		time.Sleep(time.Until(start.Add(f.at)))
		w.happen(f, start.Add(w.plan.calm()))
	}
	time.Sleep(time.Until(start.Add(w.plan.calm())))
	w.net.Disarm()
	w.heal()
}

func (w *world) happen(f fault, calm time.Time) {
	length := min(f.length, time.Until(calm))
	if f.aimed {
		f.manager = w.holder(f.manager)
		if f.strike.Client != sim.Anyone {
			f.strike.Client = f.manager
		}
	}
	w.say("%v", f)
	switch f.kind {
	case frameFault:
		if len(f.quits) > 0 {
			f.strike.Then = func(int) { time.AfterFunc(f.after, func() { w.giveUp(f.quits) }) }
		}
		if f.ends {
			f.strike.Then = w.endSession
		}
		w.net.Strike(f.strike)
	case disconnect:
		w.net.Disconnect(f.manager)
	case partition:
		w.net.Partition(f.manager, length)
	case holdFrames:
		w.net.Hold(f.manager, length)
	case lag:
		if s := w.sessionOf(f.manager); s != nil {
			w.srv.Lag(s.ID())
		}
	case cutFromLeader:
		if s := w.sessionOf(f.manager); s != nil {
			w.srv.CutFromLeader(s.ID(), true)
			w.undo(length, func() { w.srv.CutFromLeader(s.ID(), false) })
		}
	case delayRemoval:
		w.srv.DelayEphemeralRemoval(min(length, w.plan.timeout()))
		w.undo(length, func() { w.srv.DelayEphemeralRemoval(0) })
	case restart:
		w.srv.Stop()
		w.undo(length, func() { _ = w.srv.Start() })
	case freeze:
		w.srv.Freeze()
		w.undo(length, w.srv.Thaw)
	case stranded:
		if s := w.sessionOf(f.manager); s != nil {
			w.net.Strand(f.manager, length)
			w.srv.CutFromLeader(s.ID(), true)
			w.undo(length, func() { w.srv.CutFromLeader(s.ID(), false) })
		}
	case staleAfterLoss:
		for i := range endpoints {
			e := w.srv.Endpoint(1 + i)
			e.Lag()
			w.undo(length, e.CatchUp)
		}
		w.net.Strike(sim.Strike{Client: f.manager, Op: opMulti, Do: sim.ResetAfter})
	case limp:
		w.limp([]int{f.manager}, length)
	case limpAll:
		var all []int
		for i := range w.managers {
			all = append(all, i)
		}
		w.limp(all, length)
	case stopOne:
		e := w.endpoint(f)
		e.Stop()
		w.undo(length, func() { _ = e.Start() })
	case freezeOne:
		e := w.endpoint(f)
		e.Freeze()
		w.undo(length, e.Thaw)
	case lagOne:
		e := w.endpoint(f)
		e.Lag()
		w.undo(length, e.CatchUp)
	case cutOne:
		e := w.endpoint(f)
		e.CutFromLeader()
		w.undo(length, e.Rejoin)
	case expire:
		w.endSession(f.manager)
	}
}

// endSession ends the session of a Manager by force.
func (w *world) endSession(manager int) {
	if manager >= len(w.managers) {
		return
	}
	if s := w.sessionOf(manager); s != nil {
		for _, o := range w.objects {
			o.history.breaks(manager, s)
		}
		_ = w.srv.ExpireSession(s.ID())
	}
}

// limps is how often those who limp hear of what has happened.
const limps = 8

// limp has Managers see the tree for so long as it was some time before, unless
// they ask for what is new.
func (w *world) limp(managers []int, length time.Duration) {
	for _, m := range managers {
		go func() {
			for range limps {
				if s := w.sessionOf(m); s != nil {
					w.srv.Lag(s.ID())
				}
				time.Sleep(length / limps)
			}
			if s := w.sessionOf(m); s != nil {
				w.srv.CatchUp(s.ID())
			}
		}()
	}
}

// giveUp ends what clients wait for, if it may end.
func (w *world) giveUp(clients []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range clients {
		if c := w.clients[i]; c.waits != nil && c.waits.Err() == nil {
			c.gaveUpAt = time.Now()
			c.cancel()
		}
	}
}

// holder is a Manager by which something is held, and otherwise the one given.
func (w *world) holder(otherwise int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := -1
	for x := range w.holdings {
		if first < 0 || x.manager < first {
			first = x.manager
		}
	}
	if first < 0 {
		return otherwise
	}
	return first
}

// endpoint is the server that a fault strikes.
func (w *world) endpoint(f fault) *zkserver.Endpoint {
	return w.srv.Endpoint(1 + int(f.length)%endpoints)
}

// undo ends what a fault has begun.
func (w *world) undo(after time.Duration, f func()) { time.AfterFunc(after, f) }

// heal ends what faults have begun and may not have ended.
func (w *world) heal() {
	w.srv.DelayEphemeralRemoval(0)
	w.srv.Thaw()
	_ = w.srv.Start()
	for i := range endpoints {
		e := w.srv.Endpoint(1 + i)
		e.Thaw()
		e.CatchUp()
		e.Rejoin()
		_ = e.Start()
	}
	for _, s := range w.srv.Sessions() {
		w.srv.CatchUp(s.ID)
		w.srv.CutFromLeader(s.ID, false)
	}
}
