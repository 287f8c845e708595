package session

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// The server keeps watches in two tables: one for what getData and exists ask
// for, one for getChildren.
type watchKind uint8

const (
	dataWatch watchKind = iota
	childWatch
)

type watchKey struct {
	path string // as the server knows it
	kind watchKind
}

// maxIdleWatches is how many watches that nobody waits for any more are left
// on the server. Most of them are spent by the very change that was waited
// for, or taken up again, and so cost no request to remove.
const maxIdleWatches = 64

// maxRemovals is how many watches are removed at once.
const maxRemovals = 16

// setWatchesLimit keeps a request that arms watches again well below any
// server's limit, as the Java client does.
const setWatchesLimit = 128 << 10

// A hub shares one watch on the server between all that wait for the same
// thing in a session.
type hub struct {
	m    *shared
	gate *gate

	closings atomic.Int32 // connections in a row that were closed instead of an answer to removeWatches

	mu      sync.Mutex
	entries map[watchKey]*watchEntry
	idle    *list.List // of *watchEntry, the longest unused first
	ended   error

	// Of the present connection:
	armings int // requests for a watch, each of which the server answers with one event at most
	events  int // that have come
	arming  int // requests to arm watches again that are unanswered; of the reader alone
}

type watchEntry struct {
	key    watchKey
	subs   []*Watch
	pins   int  // reads under way that may arm it
	armed  bool // the server has it
	absent bool // armed on a znode that did not exist
	idle   *list.Element
}

// pin announces a read that arms the watch, so that it is not removed on the
// server between the read and its answer.
func (h *hub) pin(key watchKey) *watchEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(key)
	e.pins++
	h.armings++
	h.use(e)
	return e
}

// entry is the one entry of a key, made where there is none; h.mu is held.
func (h *hub) entry(key watchKey) *watchEntry {
	e := h.entries[key]
	if e == nil {
		e = &watchEntry{key: key}
		h.entries[key] = e
	}
	return e
}

func (h *hub) unpin(e *watchEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.pins--
	h.settle(e)
}

// subscribe adds a waiter for what a read has just armed. It runs in the
// reader's goroutine, so that no event can slip in between. The entry that the
// read had pinned may be gone by then, if its caller is.
func (h *hub) subscribe(key watchKey, conn uint64, absent bool) *Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(key)
	h.use(e)
	w := &Watch{hub: h, entry: e, events: make(chan zk.Event, 1), armed: conn}
	e.armed, e.absent = true, absent
	w.index = len(e.subs)
	e.subs = append(e.subs, w)
	if h.ended != nil {
		h.fire(e, 0, h.endEvent(e))
	}
	return w
}

// drop takes a waiter away, if it still waits; h.mu is held.
func (h *hub) drop(w *Watch) {
	if w.index < 0 {
		return
	}
	e := w.entry
	last := len(e.subs) - 1
	e.subs[w.index] = e.subs[last]
	e.subs[w.index].index = w.index
	e.subs[last] = nil
	e.subs = e.subs[:last]
	w.index = -1
	h.settle(e)
}

func (h *hub) use(e *watchEntry) {
	if e.idle != nil {
		h.idle.Remove(e.idle)
		e.idle = nil
	}
}

// settle decides what becomes of an entry that may be unused now.
func (h *hub) settle(e *watchEntry) {
	if e.pins > 0 || len(e.subs) > 0 || e.idle != nil {
		return
	}
	if !e.armed {
		delete(h.entries, e.key)
		return
	}
	e.idle = h.idle.PushBack(e)
	// Several at a time, so that a list which has grown while the operation was
	// unusable becomes short again.
	for range maxRemovals {
		if h.idle.Len() <= maxIdleWatches || !h.m.removeWatches.usable() {
			return
		}
		h.removeOldest()
	}
}

// removeOldest takes the watch that was unused for longest from the server.
// The request is queued under h.mu, so that a read that arms the watch again
// comes after it on the connection.
func (h *hub) removeOldest() {
	e := h.idle.Front().Value.(*watchEntry)
	h.use(e)
	delete(h.entries, e.key)
	kind := int32(2)
	if e.key.kind == childWatch {
		kind = 1
	}
	if w := h.gate.current(); w != nil {
		w.SendThen(&wire.Request{Op: wire.OpRemoveWatches, Own: true, Record: wire.Encoder(nil).String(e.key.path).Int(kind)}, h.removed)
	}
}

// removed takes in the outcome of a request to remove a watch. A server that
// does not know the operation closes the connection, with an answer or without
// one: that must not cost one connection after the other. A connection counts
// only if the server closed it when this request was the next to be answered.
func (h *hub) removed(c *wire.Call) {
	switch {
	case c.Err == nil && c.Code == wire.CodeUnimplemented:
		h.m.removeWatches.lacking()
	case c.Err == nil:
		h.closings.Store(0)
		h.m.removeWatches.works()
	case c.Refused && h.closings.Add(1) >= 2:
		h.closings.Store(0)
		h.m.removeWatches.suspect()
	}
}

// event takes a watch event off the wire.
func (h *hub) event(conn uint64, body []byte) error {
	d := wire.Decoder{B: body}
	kind, state, path := zk.EventType(d.Int()), zk.State(d.Int()), d.String()
	if d.Bad {
		return fmt.Errorf("%w: a watch event of %d bytes", wire.ErrMalformed, len(body))
	}
	ev := zk.Event{Type: kind, State: state, Path: h.m.strip(path)}
	h.mu.Lock()
	defer h.mu.Unlock()
	// Also events of a path with an entry count: while a read waits for its answer, the
	// entry stays whatever the number of events.
	if h.events++; h.events > h.armings+spareEvents {
		return fmt.Errorf("%w: %d events of watches that were never armed", wire.ErrMalformed, h.events-h.armings)
	}
	if kind != zk.EventNodeChildrenChanged {
		h.fire(h.entries[watchKey{path, dataWatch}], conn, ev)
	}
	if kind == zk.EventNodeChildrenChanged || kind == zk.EventNodeDeleted {
		h.fire(h.entries[watchKey{path, childWatch}], conn, ev)
	}
	return nil
}

// spareEvents is by how many events a connection may exceed the requests for a watch. A
// server sends one event at most for each.
const spareEvents = 1000

func (h *hub) fire(e *watchEntry, conn uint64, ev zk.Event) {
	if e == nil {
		return
	}
	h.use(e)
	e.armed = false
	for _, w := range e.subs {
		w.index = -1
		if w.forget != nil {
			w.forget()
		}
		w.fired.Store(conn)
		w.events <- ev
		close(w.events)
		if w.notify != nil {
			w.notify(ev)
		}
	}
	e.subs = nil
	h.settle(e)
}

// rearm asks the server behind a new connection for every watch that somebody
// still waits for. The server compares with the last change that we have seen
// and at once tells what has happened since.
func (h *hub) rearm(w *wire.Conn, since int64) {
	h.mu.Lock()
	var lists [3][]string // data, exist, child: the order of the request
	size := 0
	h.armings, h.events = len(h.entries), 0
	var batches [][3][]string
	for _, e := range h.entries {
		h.armings += e.pins // reads that are repeated on this connection
		e.armed = false
		if len(e.subs) == 0 {
			h.use(e)
			h.settle(e)
			continue
		}
		e.armed = true
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
	h.arming = len(batches)
	for _, lists := range batches {
		record := wire.Encoder(nil).Long(since)
		for _, l := range lists {
			record = record.Strings(l)
		}
		w.Send(&wire.Request{Op: wire.OpSetWatches, Own: true, Record: record, Answered: func(c *wire.Call) {
			h.arming--
			if c.Code != 0 {
				w.End(fmt.Errorf("arming watches again: %w", errorOfCode(c.Code)))
			}
		}})
	}
}

// end tells every waiter that the session is gone.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = err
	for _, e := range h.entries {
		h.fire(e, 0, h.endEvent(e))
	}
}

// endEvent is the event by which a waiter learns that the session is gone.
func (h *hub) endEvent(e *watchEntry) zk.Event {
	return zk.Event{Type: zk.EventNotWatching, State: zk.StateExpired, Path: h.m.strip(e.key.path), Err: h.ended}
}
