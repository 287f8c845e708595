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

func newPendingData(data []byte) *pendingData {
	data = slices.Clone(data)
	return &pendingData{wanted: data, kept: data, change: make(chan struct{})}
}

// present returns the data to write, and its generation.
func (d *pendingData) present() ([]byte, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted, d.newest
}

// want makes data the newest generation, and returns its number.
func (d *pendingData) want(data []byte) (generation uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = data
	d.newest++
	return d.newest
}

// outcome reports whether a generation was written or refused, and the refusal. change is
// closed when this may have changed.
func (d *pendingData) outcome(generation uint64) (over bool, change <-chan struct{}, refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.written >= generation:
		return true, nil, nil
	// The outcome of the last Set is the outcome of the earlier ones.
	case d.refused >= generation && d.refused == d.newest:
		return true, nil, d.why
	}
	return false, d.change, nil
}

// awaitData waits until a generation was written or refused, and returns the refusal.
func (e *Ephemeral) awaitData(ctx context.Context, generation uint64) error {
	for {
		over, change, refusal := e.data.outcome(generation)
		if over {
			return refusal
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

// reached records that the znode has the data of a generation.
func (d *pendingData) reached(generation uint64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A refused generation has the data of an earlier generation, and its Set has yet to
	// report the refusal. Generations arrive in order, from the goroutine of the Ephemeral.
	if generation > d.refused {
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
	// Otherwise a later Set has replaced the data, and the server may accept the new data.
	if d.newest == generation {
		d.wanted = d.kept
	}
	broadcast(&d.change)
}
