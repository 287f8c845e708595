package session

import (
	"fmt"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// setWatchesLimit keeps a request that arms watches again well below the limit of every
// server. The Java client uses the same number.
const setWatchesLimit = 128 << 10

// emptySetWatches is the size of the record of a setWatches without a path: a zxid and the
// lengths of three lists.
const emptySetWatches = 8 + 3*4

// checkWatch returns an error if a watch on a path, with the chroot, could not be armed
// again, because the servers do not accept a setWatches of this path alone.
func (b *records) checkWatch(full string) error {
	if err := b.checkSize(emptySetWatches + 4 + len(full)); err != nil {
		return fmt.Errorf("arming the watch again on another connection: %w", err)
	}
	return nil
}

// rearm arms, on a new connection, every watch that has a waiter. It calls armed in the
// reader's goroutine when the server has armed all of them.
func (h *hub) rearm(w *wire.Conn, since int64, armed func()) {
	// Until the requests are sent: the removal of one of the watches must follow them.
	h.mu.Lock()
	defer h.mu.Unlock()
	var lists [3][]string // data, exists and child watches, in the order of the request
	// checkWatch has checked each path, so a batch of a single path has at most the limit of
	// the Manager.
	const empty = wire.HeaderSize + emptySetWatches
	size, limit := empty, min(setWatchesLimit, h.m.records.max)
	// The counts belong to a connection: a server forgets its watches when the
	// connection ends.
	h.conn, h.armings, h.events = w, len(h.entries), 0
	var batches [][3][]string
	for _, e := range h.entries {
		h.armings += e.pins // these reads are repeated on this connection
		e.armed = false
		if len(e.subs) == 0 {
			h.use(e)
			h.settle(e)
			continue
		}
		// Before the answer to setWatches: the server sends the events of past changes
		// ahead of it.
		e.armed = true
		// The server would report a znode that does not exist as deleted to a data
		// watch, and a znode that exists as created to an exists watch.
		kind := 0
		switch {
		case e.key.kind == childWatch:
			kind = 2
		case e.absent:
			kind = 1
		}
		more := 4 + len(e.key.path)
		if size > empty && size+more > limit {
			batches, lists, size = append(batches, lists), [3][]string{}, empty
		}
		lists[kind] = append(lists[kind], e.key.path)
		size += more
	}
	if size > empty {
		batches = append(batches, lists)
	}
	left := len(batches)
	if left == 0 {
		armed()
	}
	for _, lists := range batches {
		// The server compares the znodes with this zxid, and sends the events of later
		// changes at once.
		record := wire.Encoder(nil).Long(since)
		for _, l := range lists {
			record = record.Strings(l)
		}
		w.Send(&wire.Request{Op: wire.OpSetWatches, Own: true, Record: record, Then: func(c *wire.Call) {
			if err := failureOf(c); err != nil {
				w.End(fmt.Errorf("arming watches again: %w", err))
				return
			}
			// Until the last batch is answered, events may be missing.
			if left--; left == 0 {
				armed()
			}
		}})
	}
}
