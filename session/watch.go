package session

import (
	"container/list"
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// A watchKind is one of the server's two tables of watches: data watches of getData and
// exists, and child watches of getChildren.
type watchKind uint8

const (
	dataWatch watchKind = iota
	childWatch
)

type watchKey struct {
	path string // with the chroot
	kind watchKind
}

// A watchEntry is a watch on the server, with its waiters. hub.mu guards it.
type watchEntry struct {
	key    watchKey
	subs   []*Watch
	pins   int  // reads in flight that may arm the watch
	armed  bool // the server has the watch
	absent bool // armed on a znode that did not exist
	idle   *list.Element
}

// A Watch is one wait for a change of a znode. It fires once, when the znode differs from
// the result of the read that returned the Watch. A change while the connection was down
// counts too. Stop ends the Watch.
type Watch struct {
	hub    *hub
	entry  *watchEntry
	index  int
	events chan zk.Event
	armed  uint64
	fired  atomic.Uint64
	forget func() bool // ends the wait for the ctx of GetW, ExistsW or ChildrenW
	notify func(zk.Event)
}

// Events returns the channel that delivers the event. The channel has a buffer of one,
// and is closed after the event. If the session ends first, the event is of type
// zk.EventNotWatching and its Err has the reason. After Stop the channel delivers nothing
// and is not closed. For a nil Watch Events returns nil.
func (w *Watch) Events() <-chan zk.Event {
	if w == nil {
		return nil
	}
	return w.events
}

// Connection returns the number of the connection on which the watch was armed.
func (w *Watch) Connection() uint64 { return w.armed }

// FiredOn returns the number of the connection that delivered the event. It is valid when
// Events has delivered the event. If the number equals Connection, no connection was lost
// in between, and so no change was missed.
func (w *Watch) FiredOn() uint64 { return w.fired.Load() }

// Stop ends the watch: no event arrives any more. Stop may be called more than once,
// after the event, and on nil.
func (w *Watch) Stop() {
	if w == nil {
		return
	}
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.drop(w)
	// Otherwise a ctx that lives on would keep the Watch.
	if w.forget != nil {
		w.forget()
	}
}

// follow makes the watch end with ctx as well, and returns its channel. For a nil Watch
// it returns nil.
func (w *Watch) follow(ctx context.Context) <-chan zk.Event {
	if w == nil {
		return nil
	}
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	// A watch that has fired already has its event in the channel.
	if w.index >= 0 && ctx.Done() != nil {
		// Under mu, because fire and Stop look at forget.
		w.forget = context.AfterFunc(ctx, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			// The event came first, and has closed the channel.
			if w.index < 0 {
				return
			}
			h.drop(w)
			// The watch has not fired, so the channel has room.
			w.events <- zk.Event{Type: zk.EventNotWatching, State: zk.StateUnknown, Path: h.m.strip(w.entry.key.path), Err: Cancelled(ctx)}
			close(w.events)
		})
	}
	return w.events
}

// Notify registers f to be called once with the event of the watch. If the event has
// arrived already, Notify calls f at once. After Stop, f is not called any more. Notify
// serves callers that watch thousands of znodes without a goroutine for each. Call it
// once, in place of receiving from Events.
//
// f runs in the goroutine that reads the connection, in the order of the events, and
// before the answer to any request that the server handled after the change. f must not
// block, and must not call methods of a Session or a Watch.
func (w *Watch) Notify(f func(zk.Event)) {
	w.hub.mu.Lock()
	// fire looks at notify under mu, too, so either fire calls f, or the event is in the
	// channel.
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
	default: // the watch was stopped
	}
}
