package queue

import (
	"sync"
	"time"
)

// A takeRun has the times of the Takes of a view that follow one another at once.
type takeRun struct {
	mu     sync.Mutex
	ended  time.Time // the end of the last Take
	looked time.Time // the last look at the line, or the begin of the run
}

// mustLook reports whether a Take that begins must look at the line.
func (r *takeRun) mustLook() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.ended) > maxPause {
		r.looked = time.Now()
	}
	if time.Since(r.looked) <= maxPause {
		return false
	}
	r.looked = time.Now()
	return true
}

// end notes the end of a Take.
func (r *takeRun) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = time.Now()
}
