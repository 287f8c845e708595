package zkserver

import (
	"slices"
	"sync"
)

// Injection is a [Fault] that was injected into a server.
type Injection struct {
	table *faultTable
	fault Fault
	id    uint64
	fired chan struct{}
	once  sync.Once

	// Guarded by the server's mu.
	matched, struck int
}

// Remove removes the fault. An effect that has begun continues: a delay runs to its end.
func (inj *Injection) Remove() {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	inj.table.retire(inj)
}

// Fired returns a channel that is closed when the fault strikes for the first time: at the begin of
// a Delay, Hold or Call, and at the end of a Drop, Disconnect or Error.
func (inj *Injection) Fired() <-chan struct{} { return inj.fired }

// Fault returns the injected fault.
func (inj *Injection) Fault() Fault { return inj.fault }

// Matched returns the number of requests or events that matched the fault, including matches that
// it did not strike. A fault that has struck for the last time counts no further matches.
func (inj *Injection) Matched() int {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	return inj.matched
}

// Count returns the number of times that the fault has struck.
func (inj *Injection) Count() int {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	return inj.struck
}

func (inj *Injection) announce() { inj.once.Do(func() { close(inj.fired) }) }

// A faultTable holds the injected faults and the log of the operations. The server's mu guards it.
type faultTable struct {
	mu         *sync.Mutex // the server's
	injections []*Injection
	last       uint64 // number of the latest injection
	ops        opLog
}

func (t *faultTable) retire(inj *Injection) {
	t.injections = slices.DeleteFunc(t.injections, func(other *Injection) bool { return other == inj })
}

// strikes counts a match and reports whether the fault strikes this match.
func (t *faultTable) strikes(inj *Injection) bool {
	inj.matched++
	f := &inj.fault
	if inj.matched < f.Nth {
		return false
	}
	inj.struck++
	if f.Times > 0 && inj.struck >= f.Times {
		t.retire(inj)
	}
	return true
}

// noteFault adds the fault to the log entry of an operation.
func (t *faultTable) noteFault(n uint64, inj *Injection) {
	op := t.ops.at(n)
	if op == nil {
		return
	}
	if op.Fault != "" {
		op.Fault += ", "
	}
	op.Fault += inj.fault.Do.String() + " " + inj.fault.At.String()
}

// noteSent marks an event as sent after its faults.
func (t *faultTable) noteSent(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op := t.ops.at(n); op != nil {
		op.Done = true
	}
}
