package session

import (
	"context"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// pendingData holds the data that the znode of an Ephemeral should have, and the progress
// of writing that data. Each Set starts a new generation.
type pendingData struct {
	mu      sync.Mutex
	wanted  []byte
	newest  uint64
	kept    []byte        // the data that were written last
	settled uint64        // the newest generation that was written or refused
	why     error         // the refusal of generation settled; nil if it was written
	change  chan struct{} // closed and replaced when newest or settled has changed
}

func newPendingData(data []byte) *pendingData {
	data = slices.Clone(data)
	return &pendingData{wanted: data, kept: data, change: make(chan struct{})}
}

// present returns the data to write, and its generation. change is closed when both may have
// changed.
func (d *pendingData) present() (data []byte, generation uint64, change <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted, d.newest, d.change
}

// want makes data the newest generation, and returns its number.
func (d *pendingData) want(data []byte) (generation uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = data
	d.newest++
	broadcast(&d.change)
	return d.newest
}

// settle records that the znode has data, the data of a generation, or why the server has
// refused them. If the generation is the newest, the data that the server accepted last are
// then wanted again.
func (d *pendingData) settle(generation uint64, data []byte, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A refused generation has the data of an earlier generation, and its Set has yet to
	// report the refusal.
	if generation <= d.settled {
		return
	}
	d.settled, d.why = generation, why
	switch {
	case why == nil:
		d.kept = data
	// Otherwise a later Set has replaced the data, and the server may accept the new data.
	case d.newest == generation:
		d.wanted = d.kept
	}
	broadcast(&d.change)
}

// outcome reports whether a generation was written or refused, and the refusal. change is
// closed when this may have changed.
func (d *pendingData) outcome(generation uint64) (over bool, change <-chan struct{}, refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The outcome of the last Set is the outcome of the earlier ones.
	if d.settled >= generation && (d.why == nil || d.settled == d.newest) {
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

// checkCreate returns an error if a create with data is above the limit of requests. The create is longer than
// the setData, and without it the znode would be absent in the next session.
func (e *Ephemeral) checkCreate(data []byte) error {
	path := e.asked
	if e.cfg.sequential {
		path = Protect(path)
	}
	r := e.m.records.create(path, nil, zk.FlagEphemeral, e.cfg.acl)
	return opError("create", path, e.m.records.checkSize(len(r.Record)+len(data)))
}
