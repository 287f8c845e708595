package proxy

import (
	"sync"
	"time"
)

// delay is a duration whose waiters learn of its changes.
type delay struct {
	mu      sync.Mutex
	d       time.Duration
	changed chan struct{} // closed when d changes; nil if nobody has asked since the last change
}

func (v *delay) set(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.d = d
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}

// current returns the duration, and a channel that is closed when the duration changes.
func (v *delay) current() (d time.Duration, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.d, v.changed
}
