package session

import (
	"testing"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// Without an observer, nothing is allocated to report a request, a hold or a wait. Breaks if observe, startHold,
// endHold or Wait.stop makes the event before it checks the observer's function.
func TestAnAbsentObserverCostsNoAllocation(t *testing.T) {
	m := &shared{}
	l := &Lease{v: &leases{m: m, id: &identity{id: 1}}, path: "/locks/a/x"}
	c := &wire.Call{Request: &wire.Request{Op: wire.OpSync}}
	waits := make([]*Wait, 2000)
	for i := range waits {
		waits[i] = m.StartIdleWait("lock", "/locks/a", nil)
	}
	for what, report := range map[string]func(){
		"a request": func() { m.observe(c, "zk1:2181") },
		"a hold":    func() { l.startHold(); l.endHold(ErrLost) },
		"a wait": func() {
			waits[len(waits)-1].Stop()
			waits = waits[:len(waits)-1]
		},
	} {
		if n := testing.AllocsPerRun(1000, report); n != 0 {
			t.Errorf("%s costs %v allocations", what, n)
		}
	}
}
