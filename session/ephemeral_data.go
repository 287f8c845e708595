package session

import (
	"context"
	"slices"
	"sync"
)

// pendingData holds the data that the znode of an Ephemeral should have, and the progress
// of writing that data. Each Set starts a new generation.
type pendingData struct {
	mu      sync.Mutex
	wanted  []byte
	newest  uint64
	written uint64 // the newest generation that has reached the znode
	kept    []byte // the data of generation written
	refused uint64 // the newest generation that the server has refused
	why     error
	change  chan struct{} // closed and replaced when written or refused has changed
}

func (d *pendingData) init(data []byte) {
	d.wanted = slices.Clone(data)
	d.kept = d.wanted
	d.change = make(chan struct{})
}

// present returns the data to write, and its generation.
func (d *pendingData) present() ([]byte, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted, d.newest
}

// want makes data the newest generation, and returns a function that waits for its
// outcome.
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

// reached records that the znode has the data of a generation.
func (d *pendingData) reached(generation uint64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if generation >= d.written {
		d.written, d.kept = generation, data
	}
	broadcast(&d.change)
}

// refuse records that the server refused a generation. If the generation is the newest,
// the data that the server accepted last is wanted again.
func (d *pendingData) refuse(generation uint64, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused, d.why = generation, why
	if d.newest == generation {
		d.wanted = d.kept
	}
	broadcast(&d.change)
}
