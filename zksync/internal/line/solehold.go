package line

import (
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A SoleHold has the hold of a value that holds at most once at a time.
type SoleHold struct {
	mu        sync.Mutex
	grant     *Grant // nil if the value does not hold
	acquiring bool   // between Begin and Set
}

// Begin fails with ErrBusy if the value holds, or if Begin was called without Set. It ends
// a hold that was lost.
func (h *SoleHold) Begin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acquiring {
		return fmt.Errorf("%w: this value is campaigning", znode.ErrBusy)
	}
	if g := h.grant; g != nil {
		if g.Lost() == nil {
			return fmt.Errorf("%w: this value leads", znode.ErrBusy)
		}
		// An Election needs no Resign after a loss.
		g.Release() // leadership was lost, so there is no answer to wait for
		h.grant = nil
	}
	h.acquiring = true
	return nil
}

// Set sets the hold of the value, or nil if none was acquired.
func (h *SoleHold) Set(g *Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grant, h.acquiring = g, false
}

// Get returns the hold of the value, nil if the value does not hold.
func (h *SoleHold) Get() *Grant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.grant
}

// Lost returns the loss of the hold, nil if the value holds nothing or has lost nothing.
func (h *SoleHold) Lost() error {
	if g := h.Get(); g != nil {
		return g.Lost()
	}
	return nil
}

// End takes a hold out and calls release with it. It fails with ErrNotHeld if g is not
// the hold of the value any more.
func (h *SoleHold) End(g *Grant, release func(*Grant) error) error {
	h.mu.Lock()
	// A Do or a Run must end its own hold only, and the value may have a newer hold by now.
	if g == nil || h.grant != g {
		h.mu.Unlock()
		return znode.ErrNotHeld
	}
	h.grant = nil
	h.mu.Unlock()
	// Without mu: the release waits for an answer, perhaps until the Deadline.
	return release(g)
}
