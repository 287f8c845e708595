package session

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// A Watch is one wait for a change of a znode. It fires once, when the znode
// is no longer as the read that came with the Watch found it; a change while
// the connection was down counts too. Stop gives it up.
type Watch struct {
	hub    *hub
	entry  *watchEntry
	index  int
	events chan zk.Event
	armed  uint64
	fired  atomic.Uint64
	forget func() bool // stops waiting for the ctx of GetW and its like
	notify func(zk.Event)
}

// Events returns the channel on which the one event comes. It has a buffer of
// one and is closed behind the event. If the session ends first, the event is
// of type zk.EventNotWatching and its Err says why; after Stop the channel
// stays open and silent.
func (w *Watch) Events() <-chan zk.Event { return w.events }

// Connection is the number of the connection on which the watch was armed.
func (w *Watch) Connection() uint64 { return w.armed }

// FiredOn is the number of the connection over which the event came; valid
// once Events has delivered it. Where it equals Connection, nothing can have
// happened unseen in between.
func (w *Watch) FiredOn() uint64 { return w.fired.Load() }

// Stop gives the watch up, so that no event arrives any more. Stop may be called
// more than once, after the event, and on nil.
func (w *Watch) Stop() {
	if w == nil {
		return
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.drop(w)
	if w.forget != nil {
		w.forget()
	}
}

// follow makes the watch end with ctx as well, and returns its channel. A nil Watch has
// none.
func (w *Watch) follow(ctx context.Context) <-chan zk.Event {
	if w == nil {
		return nil
	}
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.index >= 0 && ctx.Done() != nil {
		w.forget = context.AfterFunc(ctx, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if w.index < 0 {
				return
			}
			h.drop(w)
			w.events <- zk.Event{Type: zk.EventNotWatching, State: zk.StateUnknown, Path: h.m.strip(w.entry.key.path), Err: Cancelled(ctx)}
			close(w.events)
		})
	}
	return w.events
}

// Notify has f called with the event of the watch, once: when it comes, or at
// once if it has come already. After Stop it is not called any more. It is for
// those who follow thousands of znodes and want no goroutine for each; call it
// once, instead of receiving from Events.
//
// f runs in the goroutine that reads the connection, in the order of the events:
// ahead of the answer to any request that the server has handled after the
// change. It must not block, and must not call methods of a Session or a Watch.
func (w *Watch) Notify(f func(zk.Event)) {
	w.hub.mu.Lock()
	waiting := w.index >= 0
	if waiting {
		w.notify = f
	}
	w.hub.mu.Unlock()
	if waiting {
		return
	}
	select {
	case ev, ok := <-w.events:
		if ok {
			f(ev)
		}
	default: // given up
	}
}
