package session

import (
	"fmt"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// setWatchesLimit keeps a request that arms watches again well below the limit of every
// server. The Java client uses the same number.
const setWatchesLimit = 128 << 10

// rearm arms, on a new connection, every watch that has a waiter. It calls armed in the
// reader's goroutine when the server has armed all of them.
func (h *hub) rearm(w *wire.Conn, since int64, armed func()) {
	h.mu.Lock()
	var lists [3][]string // data, exists and child watches, in the order of the request
	size := 0
	// The counts belong to a connection: a server forgets its watches when the
	// connection ends.
	h.armings, h.events = len(h.entries), 0
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
		if size += 4 + len(e.key.path); size > setWatchesLimit {
			batches, lists, size = append(batches, lists), [3][]string{}, 4+len(e.key.path)
		}
		lists[kind] = append(lists[kind], e.key.path)
	}
	h.mu.Unlock()
	if size > 0 {
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
		w.Send(&wire.Request{Op: wire.OpSetWatches, Own: true, Record: record, Answered: func(c *wire.Call) {
			if c.Code != 0 {
				w.End(fmt.Errorf("arming watches again: %w", errorOfCode(c.Code)))
				return
			}
			// Until the last batch is answered, events may be missing.
			if left--; left == 0 {
				armed()
			}
		}})
	}
}
