package simulation_test

import (
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// misbehave applies the faults of the plan, until calm.
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
		if f.strike.Client != network.Anyone {
			f.strike.Client = f.manager
		}
	}
	w.say("%v", f)
	switch f.kind {
	case frameFault:
		if len(f.quits) > 0 {
			f.strike.Then = func(network.Frame) { time.AfterFunc(f.after, func() { w.giveUp(f.quits) }) }
		}
		if f.ends {
			f.strike.Then = func(hit network.Frame) { w.endSession(hit.Client) }
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
		w.srv.SetThawOrder(w.thawOrder(f))
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
		w.net.Strike(network.Strike{Client: f.manager, Op: opMulti, Do: network.ResetAfter})
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
		w.srv.SetThawOrder(w.thawOrder(f))
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
	case suspend:
		w.suspend(f.manager, length)
	case depose:
		if leader := w.srv.Leader(); leader != 0 {
			w.undo(length, w.srv.Endpoint(leader).Rejoin)
			w.srv.Depose()
		}
	case throttle:
		inj := w.srv.Inject(zkserver.Fault{At: zkserver.BeforeCommit, Do: zkserver.Throttle, Times: 1 + int(f.length)%20,
			Match: func(op zkserver.Op) bool { return surroundings.Throttlable(op.Code) }})
		w.undo(length, inj.Remove)
	case errBefore, errAfter:
		w.internalErrors(f, length)
	case throttleAll:
		w.answerAll(surroundings.Throttlable, zkserver.BeforeCommit, zkserver.Throttle, length)
	case errsOfAll:
		w.answerAll(surroundings.Throttlable, zkserver.BeforeCommit, internalError, length)
	case errsOfReads:
		w.answerAll(surroundings.Reads, zkserver.BeforeCommit, internalError, length)
	case errsOfWrites:
		w.answerAll(surroundings.Writes, zkserver.AfterCommit, internalError, length)
	case quota:
		w.limitDirectories(length)
	case cutBehind:
		if s := w.sessionOf(f.manager); s != nil {
			inj := w.srv.Inject(zkserver.Fault{Session: s.ID(), Op: opMulti, At: zkserver.BeforeCommit, Do: zkserver.CutAfterForward})
			w.undo(length, func() {
				inj.Remove()
				for i := range endpoints {
					w.srv.Endpoint(1 + i).Rejoin()
				}
			})
		}
	}
}

var internalError = zkserver.Error(zkserver.ErrSystem)

// internalErrors makes servers answer some requests of a Manager with an internal error.
func (w *world) internalErrors(f fault, length time.Duration) {
	s := w.sessionOf(f.manager)
	if s == nil {
		return
	}
	at := zkserver.BeforeCommit
	if f.kind == errAfter {
		at = zkserver.AfterCommit
	}
	inj := w.srv.Inject(zkserver.Fault{Session: s.ID(), At: at, Do: internalError, Times: 1 + int(f.length)%3,
		Match: func(op zkserver.Op) bool {
			return surroundings.Throttlable(op.Code) && (at == zkserver.BeforeCommit || op.Zxid != 0)
		}})
	w.undo(length, inj.Remove)
}

// answerAll makes the servers answer each request of some operations, of all Managers, in the same way.
func (w *world) answerAll(ops func(zkserver.OpCode) bool, at zkserver.Moment, do zkserver.Action, length time.Duration) {
	inj := w.srv.Inject(zkserver.Fault{At: at, Do: do, Times: -1, Match: func(op zkserver.Op) bool { return ops(op.Code) }})
	w.undo(length, inj.Remove)
}

// limitDirectories lets the directories have no more znodes and bytes than they have.
func (w *world) limitDirectories(length time.Duration) {
	for _, limits := range surroundings.LimitDirectories(w.srv) {
		w.undo(length, func() { w.unlimit(limits) })
	}
}

// unlimit deletes a quota, as soon as there is a leader.
func (w *world) unlimit(limits string) {
	for begin := time.Now(); time.Since(begin) < 2*w.plan.calm(); time.Sleep(w.plan.tick / 4) {
		if w.srv.Delete(limits) == nil {
			return
		}
	}
	w.fail("the quota %s cannot be deleted", limits)
}

// refused reports whether a fault that makes servers refuse requests is the reason for an error.
func (w *world) refused(err error) bool {
	if err == nil {
		return false
	}
	return w.plan.has(errBefore, errAfter, errsOfAll, errsOfReads, errsOfWrites) && strings.Contains(err.Error(), "system error") ||
		w.plan.has(quota) && strings.Contains(err.Error(), "quota exceeded")
}

// has reports whether a plan has a fault of one of the kinds.
func (p *plan) has(kinds ...faultKind) bool {
	return slices.ContainsFunc(p.faults, func(f fault) bool { return slices.Contains(kinds, f.kind) })
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

// limps is the number of times that a limping session catches up.
const limps = 8

// limp makes Managers see an older state of the tree for a time, unless they sync.
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

// holder returns a Manager that holds something, or otherwise the given Manager.
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

// endpoint returns the server that a fault strikes.
func (w *world) endpoint(f fault) *zkserver.Endpoint {
	return w.srv.Endpoint(1 + int(f.length)%endpoints)
}

// thawOrder returns the first action of a leader that resumes after a fault.
func (w *world) thawOrder(f fault) zkserver.ThawOrder {
	return zkserver.ThawOrder(int(f.at) % int(zkserver.SweepFirst+1))
}

// undo ends the effect of a fault after a time.
func (w *world) undo(after time.Duration, f func()) { time.AfterFunc(after, f) }

// heal ends the effects of all faults.
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
