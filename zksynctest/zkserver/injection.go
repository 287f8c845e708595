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
	matched  int
	selected int // matches that the fault is to strike
	struck   int
	removed  bool
}

// Remove removes the fault. An effect that has begun continues: a delay runs to its end. A fault
// OnWatch does not strike an event whose turn to be sent comes later.
func (inj *Injection) Remove() {
	inj.table.mu.Lock()
	defer inj.table.mu.Unlock()
	inj.removed = true
	inj.table.retire(inj)
}

// Fired returns a channel that is closed when the fault strikes for the first time: at the begin of
// a Delay, Hold or Call, and at the end of a Drop, Disconnect or Error.
func (inj *Injection) Fired() <-chan struct{} { return inj.fired }

// Fault returns the injected fault.
func (inj *Injection) Fault() Fault { return inj.fault }

// Matched returns the number of requests or events that matched the fault, including matches that
// it did not strike. Events match when they are queued. A fault counts no matches after the last
// match that it strikes.
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
	removed    uint64 // number of the latest injection that RemoveFaults has removed
	ops        opLog
}

func (t *faultTable) retire(inj *Injection) {
	t.injections = slices.DeleteFunc(t.injections, func(other *Injection) bool { return other == inj })
}

// selects counts a match and reports whether the fault is to strike this match.
func (t *faultTable) selects(inj *Injection) bool {
	inj.matched++
	f := &inj.fault
	if inj.matched < f.Nth {
		return false
	}
	inj.selected++
	if f.Times > 0 && inj.selected >= f.Times {
		t.retire(inj)
	}
	return true
}

// strikes counts and notes a fault at the moment of an event that it was selected for. It returns
// false if the fault has been removed since.
func (t *faultTable) strikes(n uint64, inj *Injection) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if inj.removed || inj.id <= t.removed {
		return false
	}
	inj.struck++
	t.noteFault(n, inj)
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
