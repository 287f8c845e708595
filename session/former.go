package session

import (
	"slices"
	"sync"
)

// maxFormer is how many lost sessions are remembered: more than can have
// znodes left.
const maxFormer = 64

// formerSessions are the ids of the sessions that a Manager has lost.
type formerSessions struct {
	mu  sync.Mutex
	ids []int64
}

// add remembers a session that was lost.
func (f *formerSessions) add(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, id)
	f.ids = f.ids[max(0, len(f.ids)-maxFormer):]
}

func (f *formerSessions) has(id int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.ids, id)
}
