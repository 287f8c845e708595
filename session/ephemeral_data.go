package session

import (
	"context"
	"slices"
	"sync"
)

// pendingData is what an Ephemeral's znode should hold, and how far that has
// got. Each Set makes a new generation.
type pendingData struct {
	mu      sync.Mutex
	wanted  []byte
	newest  uint64
	written uint64 // the newest generation that has reached the znode
	kept    []byte // which was this
	refused uint64 // the newest generation that the server has refused
	why     error
	change  chan struct{} // closed and replaced when one of these has moved on
}

func (d *pendingData) init(data []byte) {
	d.wanted = slices.Clone(data)
	d.kept = d.wanted
	d.change = make(chan struct{})
}

// present is what to write, and its generation.
func (d *pendingData) present() ([]byte, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted, d.newest
}

// want makes data the newest generation and returns how to wait for it.
func (d *pendingData) want(data []byte) func(context.Context, *Ephemeral) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = data
	d.newest++
	mine := d.newest
	return func(ctx context.Context, e *Ephemeral) error {
		for {
			d.mu.Lock()
			written, refused, why, change := d.written, d.refused, d.why, d.change
			d.mu.Unlock()
			switch {
			case written >= mine:
				return nil
			case refused >= mine:
				return why
			}
			select {
			case <-change:
			case <-ctx.Done():
				return e.cancelled(ctx)
			case <-e.done:
				return e.Err()
			}
		}
	}
}

// reached notes that a generation is what the znode holds.
func (d *pendingData) reached(generation uint64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if generation >= d.written {
		d.written, d.kept = generation, data
	}
	broadcast(&d.change)
}

// refuse notes that the server does not take a generation, and goes back to
// what it took.
func (d *pendingData) refuse(generation uint64, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused, d.why = generation, why
	if d.newest == generation {
		d.wanted = d.kept
	}
	broadcast(&d.change)
}
