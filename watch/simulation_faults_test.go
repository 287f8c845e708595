package watch_test

import (
	netsim "github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// misbehave has something go wrong.
func (sim *simulation) misbehave() {
	r := sim.rnd
	sim.counts.faults++
	switch r.IntN(13) {
	case 0:
		sim.say("disconnect")
		sim.net.Disconnect(0)
	case 8:
		// Two breaks in a row, the second while the watches are armed again.
		sim.say("disconnect, twice")
		sim.net.Disconnect(0)
		for range r.IntN(12) {
			sim.change()
		}
		sim.net.Strike(netsim.Strike{Dir: netsim.Down, Nth: 2 + r.IntN(20), Do: []netsim.Effect{netsim.Reset, netsim.ResetAfter}[r.IntN(2)]})
	case 1:
		if id := sim.session(); id != 0 {
			sim.say("expire")
			sim.counts.sessions++
			_ = sim.srv.ExpireSession(id) // it may be over
		}
	case 2:
		e := sim.srv.Endpoint(1 + r.IntN(3))
		sim.say("endpoint %d lags", e.Number())
		e.Lag()
		sim.heal = append(sim.heal, e.CatchUp)
	case 3:
		sim.healAll()
	case 4:
		op := []zkserver.OpCode{zkserver.OpGetData, zkserver.OpGetChildren2, zkserver.OpExists, zkserver.OpMulti}[r.IntN(4)]
		f := zkserver.Fault{Op: op, Nth: 1 + r.IntN(5), Times: 1 + r.IntN(5), Do: zkserver.Error(-127)}
		if op == zkserver.OpMulti {
			f.Times = 1
		}
		sim.say("%v", f)
		sim.srv.Inject(f)
	case 9:
		e := sim.srv.Endpoint(1 + r.IntN(3))
		sim.say("endpoint %d is cut off from its leader", e.Number())
		e.CutFromLeader()
		sim.heal = append(sim.heal, e.Rejoin)
	case 10:
		e := sim.srv.Endpoint(1 + r.IntN(3))
		order := []zkserver.ThawOrder{zkserver.RequestsFirst, zkserver.RequestsDuringSweep, zkserver.RequestsAfterMark, zkserver.SweepFirst}[r.IntN(4)]
		sim.say("endpoint %d is paused, then %v", e.Number(), order)
		sim.srv.SetThawOrder(order)
		e.Freeze()
		sim.heal = append(sim.heal, e.Thaw)
	case 11:
		if n := sim.srv.Depose(); n > 0 {
			sim.say("endpoint %d is deposed", n)
			sim.heal = append(sim.heal, sim.srv.Endpoint(n).Rejoin)
		}
	case 12:
		d := upTo(r, 2*simTimeout)
		sim.say("the process is suspended for %v", d)
		sim.net.Hold(0, d)
	default:
		// The requests that matter, and two of these in a row.
		for range 1 + r.IntN(2) {
			s := netsim.Strike{Dir: netsim.Direction(r.IntN(2)), Nth: 1 + r.IntN(12), For: upTo(r, simTimeout/2)}
			s.Op = []int32{0, 0, 0, 101, 101, 9, 4, 12, 3}[r.IntN(9)]
			s.Do = []netsim.Effect{netsim.Reset, netsim.Reset, netsim.ResetAfter, netsim.ResetAfter, netsim.Stall, netsim.Swallow}[r.IntN(6)]
			sim.say("%v", s)
			sim.net.Strike(s)
		}
		if r.IntN(2) == 0 {
			sim.net.Disconnect(0)
		}
	}
}

func (sim *simulation) healAll() {
	for _, f := range sim.heal {
		f()
	}
	sim.heal = nil
}
