package session

import "testing"

// Without an observer, nothing is allocated to report a request, a hold or a wait. Breaks
// if observe, startHold, endHold or Wait.stop makes the event before it looks for the
// observer's function.
func TestAnAbsentObserverCostsNoAllocation(t *testing.T) {
	s := &Session{m: &Manager{}, id: 1}
	w, l := &wire{s: s, server: "zk1:2181"}, &Lease{s: s, path: "/locks/a/x"}
	c := &call{op: opSync}
	waits := make([]*Wait, 2000)
	for i := range waits {
		waits[i] = s.m.StartIdleWait("lock", "/locks/a", nil)
	}
	for what, report := range map[string]func(){
		"a request": func() { w.observe(c) },
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
