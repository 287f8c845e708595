package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// A hold is one turn of a worker with the lock, as the worker sees it.
type hold struct {
	worker *worker
	held   context.Context // as LockContext returned it
	token  int64
	from   time.Time

	free chan struct{} // closed by the saboteur when it is done with this hold

	over     chan time.Time
	unfollow func() bool

	mu      sync.Mutex
	struck  time.Time // when a fault hit it
	revoked time.Time // when its session was expired by force
}

func newHold(w *worker, held context.Context) *hold {
	h := &hold{worker: w, held: held, from: time.Now(), free: make(chan struct{}), over: make(chan time.Time, 1)}
	h.token, _ = zksync.Token(held)
	h.unfollow = context.AfterFunc(held, func() { h.over <- time.Now() })
	return h
}

// strike notes the moment of a fault, just before it.
func (h *hold) strike(byForce bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.struck = time.Now()
	if byForce {
		h.revoked = h.struck
	}
}

func (h *hold) struckAt() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.struck
}

// end closes the interval: at the end of the held context, or now if it lives. Call
// it before Unlock, for from then on another worker may hold the lock.
func (h *hold) end() span {
	s := span{worker: h.worker.name, token: h.token, from: h.from}
	if h.unfollow() {
		s.until = time.Now()
	} else {
		s.until = <-h.over
		s.lost = errors.Is(context.Cause(h.held), zksync.ErrLost)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.struck, s.revoked = h.struck, h.revoked
	return s
}
