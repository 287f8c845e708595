package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// trouble is the Wait of a stream that tries again and again while servers answer with errors.
type trouble struct {
	mu    sync.Mutex
	wait  *session.Wait
	times int
	last  error
}

// note notes an error before another attempt, and returns the number of errors in a row.
func (t *trouble) note(cfg *Config, err error) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
	t.last = err
	if t.wait == nil && t.times > 1 { // one error delays nothing
		t.wait = cfg.Manager.StartWait("consume", cfg.Path, t.reason)
	}
	return t.times
}

func (t *trouble) reason(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Errorf("for the delivery, which has failed %d times, at last: %w", t.times, t.last)
}

// end ends the Wait. An error afterwards does not follow the errors before.
func (t *trouble) end() {
	t.mu.Lock()
	wait := t.wait
	t.wait, t.times = nil, 0
	t.mu.Unlock()
	wait.Stop() // without the mutex: a report asks for the reason
}
