package session

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// maxIdleWatches is the number of watches without a waiter that stay on the server. The
// change that the waiter waited for, or a new waiter, uses up most of these watches, so
// their removal costs no request.
const maxIdleWatches = 64

// maxRemovals is the number of requests to remove a watch that are in flight at the same
// time. The end of a large Tree leaves hundreds of thousands of idle watches, whose removal
// must not delay the transactions that keep a hold.
const maxRemovals = 64

// A hub shares one watch on the server between all waiters of a session that wait for the
// same path and kind.
type hub struct {
	m *shared

	closings atomic.Int32 // connections in a row that the server closed instead of answering removeWatches
	removals atomic.Int32 // requests to remove a watch that are in flight
	refusals atomic.Int32 // rounds of these requests that a server has refused for now, since it last removed a watch

	mu      sync.Mutex
	entries map[watchKey]*watchEntry
	idle    *list.List // of *watchEntry, ordered by time without use, longest first
	ended   error
	later   *time.Timer // calls trim when removeWatches may be sent again; nil if it is not set

	// The following fields belong to the connection on which rearm ran last.
	conn    *wire.Conn
	armings int // requests for a watch; the server sends at most one event for each
	events  int // events that have arrived
}

// pin announces a read that arms the watch, until unpin.
func (h *hub) pin(key watchKey) *watchEntry {
	// Between the read and its answer the watch must not be removed from the server.
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.entry(key)
	e.pins++
	h.armings++
	h.use(e)
	return e
}

// entry returns the entry of a key and creates the entry if necessary; h.mu is held.
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
	// The read may have failed, or its caller may have gone: then no waiter needs the
	// watch, and settle gives it up.
	e.pins--
	h.settle(e)
}

// subscribe adds a waiter to the watch that a read has just armed. It runs in the
// reader's goroutine, so that no event can arrive earlier.
func (h *hub) subscribe(key watchKey, conn uint64, absent bool) *Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	// If the caller of the read has gone, the entry that the read had pinned may be gone.
	e := h.entry(key)
	h.use(e)
	w := &Watch{hub: h, entry: e, events: make(chan zk.Event, 1), armed: conn}
	e.armed, e.absent = true, absent
	w.index = len(e.subs)
	e.subs = append(e.subs, w)
	// The answer may arrive while the session ends. Then end has already fired the
	// other watches.
	if h.ended != nil {
		h.fire(e, 0, h.endEvent(e))
	}
	return w
}

// drop removes a waiter that still waits; h.mu is held.
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

// settle deletes an entry that is not used any more, or puts it on the idle list; h.mu is
// held.
func (h *hub) settle(e *watchEntry) {
	if e.pins > 0 || len(e.subs) > 0 || e.idle != nil {
		return
	}
	if !e.armed {
		delete(h.entries, e.key)
		return
	}
	e.idle = h.idle.PushBack(e)
	h.trim()
}

// trim removes watches from the server while too many are idle, as far as maxRemovals allows;
// h.mu is held. The end of the session removes the watches of a Manager that closes. While removeWatches
// may not be sent, a timer calls trim again: perhaps no later wait does so.
func (h *hub) trim() {
	for h.m.ctx.Err() == nil && h.idle.Len() > maxIdleWatches && h.removals.Load() < maxRemovals && h.m.removeWatches.usable() {
		h.removeOldest()
	}
	if pause := h.m.removeWatches.pause(); pause > 0 && h.idle.Len() > maxIdleWatches && h.later == nil && h.ended == nil {
		h.later = time.AfterFunc(pause, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.later = nil
			h.trim()
		})
	}
}

// removeOldest removes from the server the watch that was unused for longest; h.mu is
// held.
func (h *hub) removeOldest() {
	e := h.idle.Front().Value.(*watchEntry)
	h.use(e)
	delete(h.entries, e.key)
	kind := int32(2)
	if e.key.kind == childWatch {
		kind = 1
	}
	// Under h.mu, so that a read that arms the watch again follows this request on the
	// connection. The connection need not be in use yet: rearm may have armed the watch on it. If
	// the connection has ended, the server has no watch to remove.
	h.removals.Add(1)
	h.conn.Send(&wire.Request{
		Op: wire.OpRemoveWatches, Own: true, Record: wire.Encoder(nil).String(e.key.path).Int(kind),
		Then: func(c *wire.Call) { h.removed(e.key, c) },
	})
}

// removed handles the outcome of a request to remove a watch. If the call has an error,
// h.mu may be held.
func (h *hub) removed(key watchKey, c *wire.Call) {
	h.removals.Add(-1)
	feature := &h.m.removeWatches
	if c.Err != nil {
		// A server that does not know the operation closes the connection, with or without an
		// answer, and the operation must not break one connection after another. A closed
		// connection counts only if this request was the next one to be answered.
		if c.Refused && h.closings.Add(1) >= 2 {
			h.closings.Store(0)
			feature.suspect()
		}
		return
	}
	h.closings.Store(0)
	// Before keep, which would otherwise send the request again at once.
	switch {
	case c.Code == 0 || c.Code == codeNoWatcher:
		feature.works()
		h.refusals.Store(0)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.trim()
		return
	case c.Code == wire.CodeUnimplemented:
		feature.lacking()
	case !feature.usable(): // the refusals of requests that were sent together count as one
	case classOfCode(c.Code) == ClassTransient:
		feature.refused(h.m.jitter.spread(backoff(int(h.refusals.Add(1)), firstBackoff, firstPause)))
	default:
		feature.suspect()
	}
	h.keep(key)
}

// keep records that the server still has a watch that it was to remove.
func (h *hub) keep(key watchKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A read that arms the watch again may have created another entry meanwhile.
	e := h.entry(key)
	e.armed = true
	h.settle(e)
}

// event delivers a watch event to the waiters.
func (h *hub) event(conn uint64, body []byte) error {
	d := wire.Decoder{B: body}
	kind, state, path := zk.EventType(d.Int()), zk.State(d.Int()), d.String()
	if d.Bad {
		return fmt.Errorf("%w: a watch event of %d bytes", wire.ErrMalformed, len(body))
	}
	ev := zk.Event{Type: kind, State: state, Path: h.m.strip(path)}
	h.mu.Lock()
	defer h.mu.Unlock()
	// Count events even if the path has an entry: while a read waits for its answer, the
	// entry stays, so the entry does not limit the number of events.
	if h.events++; h.events > h.armings+spareEvents {
		return fmt.Errorf("%w: %d events of watches that were never armed", wire.ErrMalformed, h.events-h.armings)
	}
	// The server fires data watches and child watches of a znode by one event when the
	// znode is deleted.
	if kind != zk.EventNodeChildrenChanged {
		h.fire(h.entries[watchKey{path, dataWatch}], conn, ev)
	}
	if kind == zk.EventNodeChildrenChanged || kind == zk.EventNodeDeleted {
		h.fire(h.entries[watchKey{path, childWatch}], conn, ev)
	}
	return nil
}

// spareEvents is the number of events by which a connection may exceed the requests for a
// watch. A correct server sends at most one event per request.
const spareEvents = 1000

func (h *hub) fire(e *watchEntry, conn uint64, ev zk.Event) {
	if e == nil {
		return
	}
	h.use(e)
	// A watch fires once: the server has forgotten it.
	e.armed = false
	for _, w := range e.subs {
		w.index = -1
		if w.forget != nil {
			w.forget()
		}
		w.fired.Store(conn)
		// The channel has room, because a watch fires once.
		w.events <- ev
		close(w.events)
		if w.notify != nil {
			w.notify(ev)
		}
	}
	e.subs = nil
	// A read in flight may arm the watch again, so the entry stays until unpin.
	h.settle(e)
}

// end sends every waiter the end of the session.
func (h *hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = err
	if h.later != nil {
		h.later.Stop()
	}
	for _, e := range h.entries {
		h.fire(e, 0, h.endEvent(e))
	}
}

// endEvent returns the event that reports the end of the session to a waiter.
func (h *hub) endEvent(e *watchEntry) zk.Event {
	return zk.Event{Type: zk.EventNotWatching, State: zk.StateExpired, Path: h.m.strip(e.key.path), Err: h.ended}
}
