package zkserver

import (
	"slices"
	"sync"
)

// Injection is a [Fault] that was given to a server.
type Injection struct {
	table *faultTable
	fault Fault
	id    uint64
	fired chan struct{}
	once  sync.Once

	// Guarded by the server's mu.
	matched, struck int
}

// Remove takes the fault back. What it has begun goes on: a delay is waited for.
func (inj *Injection) Remove() {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	inj.table.retire(inj)
}

// Fired is closed when the fault strikes for the first time: when a Delay, Hold or
// Call begins, and when a Drop, Disconnect or Error has been done.
func (inj *Injection) Fired() <-chan struct{} { return inj.fired }

// Fault is what was injected.
func (inj *Injection) Fault() Fault { return inj.fault }

// Matched is how many requests or events the fault has looked at and found to be
// meant, whether or not it struck. A fault that has struck for the last time counts
// no further.
func (inj *Injection) Matched() int {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	return inj.matched
}

// Count is how often the fault has struck.
func (inj *Injection) Count() int {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	return inj.struck
}

func (inj *Injection) announce() { inj.once.Do(func() { close(inj.fired) }) }

// A faultTable has the faults that were injected and the log of the operations. The
// server's mu guards it.
type faultTable struct {
	mu         *sync.Mutex // the server's
	injections []*Injection
	last       uint64 // the number of the latest injection
	ops        opLog
}

func (t *faultTable) retire(inj *Injection) {
	t.injections = slices.DeleteFunc(t.injections, func(other *Injection) bool { return other == inj })
}

// strikes counts a match and reports whether the fault strikes at it.
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

// noteFault adds to what was injected into an operation.
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

// noteSent notes that an event was sent after its faults.
func (t *faultTable) noteSent(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op := t.ops.at(n); op != nil {
		op.Done = true
	}
}
