package enumeration_test

import "sync"

// tasks counts functions that run in goroutines of their own. Unlike those of a WaitGroup, a function may start while
// wait is called: a fault may strike when a scenario ends.
type tasks struct {
	mu    sync.Mutex
	count int
	ended chan struct{} // closed when count falls to 0; nil if it is 0
}

// start runs f in a goroutine.
func (t *tasks) start(f func()) {
	t.mu.Lock()
	if t.count++; t.ended == nil {
		t.ended = make(chan struct{})
	}
	t.mu.Unlock()
	go func() {
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.count--; t.count == 0 {
			close(t.ended)
			t.ended = nil
		}
	}()
}

// wait waits until no function runs.
func (t *tasks) wait() {
	for {
		t.mu.Lock()
		ended := t.ended
		t.mu.Unlock()
		if ended == nil {
			return
		}
		<-ended
	}
}
