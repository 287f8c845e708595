package watch

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/go-zksync/toolkit/session"
)

// A Cache is a local mirror of a znode and everything below it. It reads with many
// requests in flight, watches keep it up to date, and after any outage it comes to
// equal the server's tree again. Paths are the full paths of znodes, not relative to
// the root of the Cache. All methods may be called from any goroutine.
//
// The Cache ends with the ctx given to Tree, when the Manager is closed, or when the
// server refuses for good to show the root; the Cache then keeps its last state. A
// znode below the root that may not be read is in the Cache without data or without
// children, and TreeEvent.Err says so; so is a znode whose data or children exceed
// session.WithMaxAnswer. The Cache reads it again when its data or its siblings change, and in
// the next session. It reads data that were too large when they have become small enough, and
// a list that was too large when the data of its znode change.
//
// Each znode costs two watches on the server. Two znodes are not read at the same
// instant: a Cache may show one change and not yet an earlier change.
//
// If the ACL of a znode is closed to this process for a time, the Cache may miss its
// changes until the next change of its data or of its siblings, or until the next session,
// and servers may take its watches away: see the non-guarantees of the package. A list of
// children that was too large is missed in the same way. To follow ACLs that are closed and
// opened, end the Cache and make another.
type Cache struct {
	view   *view
	mirror *mirror
	events chan TreeEvent
}

// Tree mirrors root and everything below it. It does no I/O itself and returns
// at once; WaitSynced waits until all has been read. root need not exist. An
// invalid path ends the Cache before it begins, with session.ErrInvalidPath.
func Tree(ctx context.Context, m *session.Manager, root string) *Cache {
	c := &Cache{view: newView(), events: make(chan TreeEvent)}
	c.mirror = newMirror(ctx, m, root, c.view)
	err := session.CheckPath(root)
	if err == nil && m == nil {
		_, err = m.Session(ctx) // the error of a nil Manager
	}
	if err != nil {
		c.mirror.finish(err)
		close(c.events)
		return c
	}
	go c.mirror.run()
	go c.pump()
	return c
}

// Get returns the present state of a znode, and whether the znode is in the
// mirror. The data is shared and must not be changed.
func (c *Cache) Get(path string) (State, bool) {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	if n := c.view.nodes[path]; n != nil {
		return n.state, true
	}
	return State{Path: path}, false
}

// Children returns the names of the children of a znode, sorted, and whether the
// znode is in the mirror.
func (c *Cache) Children(path string) ([]string, bool) {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	n := c.view.nodes[path]
	if n == nil {
		return nil, false
	}
	// A child that was listed and not read yet is not in the mirror for the caller.
	names := slices.DeleteFunc(slices.AppendSeq([]string{}, maps.Keys(n.children)), func(name string) bool { return !n.children[name].visible })
	slices.Sort(names)
	return names, true
}

// Len is the number of znodes in the mirror, the root included.
func (c *Cache) Len() int {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	return len(c.view.nodes)
}

// Events returns the channel of the changes of the mirror, from an empty mirror to
// its present contents and on; see TreeEvent for their order. The channel has one
// consumer and no buffer. Changes that are not received are merged, to at most one
// event for a znode, which has the znode's state at the time when the event is
// received. The Cache closes the channel when it ends; Err returns the reason.
// Nobody needs to receive.
func (c *Cache) Events() <-chan TreeEvent { return c.events }

// All returns the events as a sequence for range: each as (event, nil), and when
// the Cache ends, once, a zero event and the reason, the end of ctx included.
// Leaving the loop does not end the Cache: another loop goes on behind the last
// event.
func (c *Cache) All() iter.Seq2[TreeEvent, error] {
	return func(yield func(TreeEvent, error) bool) {
		for ev := range c.events {
			if !yield(ev, nil) {
				return
			}
		}
		yield(TreeEvent{}, c.Err())
	}
}

// Err returns nil while the Cache goes on, and then an *EndError, which says why
// the Cache has ended, and names the root.
func (c *Cache) Err() error { return context.Cause(c.mirror.over) }

// WaitSynced waits until each path shows a state that the path had at the time of
// the call, or later: it commits a transaction without effect (see
// [session.Session.SyncQuorum]), and waits for all reads that are needed then. It also
// waits for the first load, and waits over lost connections and sessions. It fails when
// ctx or the Cache ends, and when the server refuses the transaction for good. If ctx ends
// while no server can be used, the error has each server and the outcome of the attempts; and
// if ctx ends while a server refuses the reads again and again, the error has the refusal.
func (c *Cache) WaitSynced(ctx context.Context) error {
	if c.mirror.over.Err() != nil {
		return c.Err()
	}
	w := c.mirror.waiters.add()
	select {
	case err := <-w.done:
		return err
	case <-c.mirror.over.Done():
		_ = c.mirror.waiters.remove(w)
		return c.Err()
	case <-ctx.Done():
		// Otherwise waiters would pile up while no server answers.
		refusal := c.mirror.waiters.remove(w)
		if refusal != nil && c.mirror.m.State() == session.Connected {
			return session.CancelledWaiting(ctx, fmt.Errorf("waiting %w", refusal))
		}
		return c.mirror.m.Cancelled(ctx)
	}
}

// pump hands the events to their receiver.
func (c *Cache) pump() {
	defer close(c.events)
	for {
		ev, any := c.view.next()
		// A nil channel takes the case out of the select while there is no event.
		var out chan<- TreeEvent
		if any {
			out = c.events
		}
		select {
		case out <- ev:
			c.view.received(ev)
		// The znode may have changed, so the next round makes the event anew. A receiver that
		// has just taken the former event gets another one.
		case <-c.view.wake:
		case <-c.mirror.over.Done():
			return
		}
	}
}

// A TreeEventType says what has become of a znode in a Cache.
type TreeEventType uint8

const (
	// Added: the znode exists, and did not exist when it was last reported.
	Added TreeEventType = iota + 1
	// Changed: the znode has other data than was last reported, or was deleted and
	// created again, or has become readable or unreadable.
	Changed
	// Removed: the znode does not exist any more.
	Removed
)

var treeEventTypeNames = [...]string{Added: "Added", Changed: "Changed", Removed: "Removed"}

// String returns the name of the constant.
func (t TreeEventType) String() string {
	return nameOf(treeEventTypeNames[:], uint8(t), "TreeEventType")
}

// A TreeEvent is a change of one znode in a Cache. The events of one znode come in
// the order of zxids. A receiver that applies all events always has a tree: a znode
// is Added after its parent, and Removed after everything below it. Beyond that
// the order is the order in which the Cache has read the znodes.
type TreeEvent struct {
	Type TreeEventType
	State
	// Err is why the data or the children cannot be read, as zk.ErrNoAuth; nil
	// otherwise. State has what could be read.
	Err error
}
