package watch

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A mirror keeps a tree of nodes equal to a subtree on the server. One goroutine
// does so, in the order in which the connection delivers answers and events.
type mirror struct {
	m    *session.Manager
	root string
	view *view

	outer  context.Context // as given to Tree
	ctx    context.Context // ends with outer, or with the mirror
	cancel context.CancelFunc
	over   chan struct{} // closed when err is set
	err    error

	// Of the goroutine alone:
	in      *session.Inbox
	top     *treeNode
	epochs  epochs
	listing uint64 // the number of lists that were applied

	// mu guards how waiters reach the goroutine.
	mu      sync.Mutex
	inbox   *session.Inbox // in, while a session is followed
	waiters map[*waiter]struct{}
}

// A waiter is a call of WaitSynced. It waits for the sides that are asked when its
// sync is answered.
type waiter struct {
	done chan struct{} // closed when err is set
	err  error         // the refusal of the sync

	// Of the mirror's goroutine alone:
	synced bool   // the sync was answered
	epoch  uint64 // the epoch that the sync has ended
}

func newMirror(ctx context.Context, m *session.Manager, root string, v *view) *mirror {
	mi := &mirror{
		m: m, root: root, view: v, outer: ctx, over: make(chan struct{}),
		top: newTreeNode(nil, root, ""), waiters: make(map[*waiter]struct{}),
	}
	mi.ctx, mi.cancel = context.WithCancel(ctx)
	mi.epochs.next() // the first is firstEpoch
	// Nothing else announces the root.
	mi.top.sides[dataSide].awaited = true
	return mi
}

// run follows the root over one session after the other.
func (mi *mirror) run() {
	for {
		s, err := mi.m.Session(mi.ctx)
		if err == nil {
			err = mi.follow(s)
		}
		if mi.ctx.Err() != nil || errors.Is(err, session.ErrClosed) || !errors.Is(err, session.ErrLost) {
			mi.finish(err)
			return
		}
	}
}

// finish ends the mirror.
func (mi *mirror) finish(why error) {
	mi.err = ended(mi.outer, "tree", mi.root, why)
	mi.cancel()
	close(mi.over)
}

// follow applies the deliveries of one session's connections, in order. It returns
// when the session is lost, or when the root is refused.
func (mi *mirror) follow(s *session.Session) error {
	mi.in = s.NewInbox()
	defer mi.in.Close()
	mi.begin()
	defer mi.setInbox(nil)
	for {
		batch, err := mi.in.Receive(mi.ctx)
		if err != nil {
			return err
		}
		for i := range batch {
			testHookApply()
			if err := mi.apply(&batch[i]); err != nil {
				return err
			}
			mi.settle()
		}
	}
}

// begin asks for every side: the watches of another session are gone.
func (mi *mirror) begin() {
	for _, w := range mi.setInbox(mi.in) {
		// A waiter whose sync was answered waits for the sides that become asked below:
		// they belong to the oldest epoch, and show everything that the sync has shown.
		if !w.synced {
			mi.in.Sync(mi.root, w)
		}
	}
	mi.epochs.restart()
	// From the top, so that the mirror learns early what has vanished.
	for level := []*treeNode{mi.top}; len(level) > 0; {
		var below []*treeNode
		for _, n := range level {
			for kind := range n.sides {
				n.sides[kind].state = unasked
				mi.need(&n.sides[kind], firstEpoch)
			}
			for _, name := range sortedKeys(n.children) {
				below = append(below, n.children[name])
			}
		}
		level = below
	}
}

// setInbox sets where waiters post to. It returns the waiters that have posted
// before, or had nowhere to post to.
func (mi *mirror) setInbox(in *session.Inbox) (earlier []*waiter) {
	mi.mu.Lock()
	defer mi.mu.Unlock()
	mi.inbox = in
	for w := range mi.waiters {
		earlier = append(earlier, w)
	}
	return earlier
}

// wait adds a waiter.
func (mi *mirror) wait() *waiter {
	w := &waiter{done: make(chan struct{})}
	mi.mu.Lock()
	defer mi.mu.Unlock()
	mi.waiters[w] = struct{}{}
	if mi.inbox != nil {
		mi.inbox.Post(w)
	}
	return w
}

// giveUp removes a waiter whose caller has gone.
func (mi *mirror) giveUp(w *waiter) {
	mi.mu.Lock()
	defer mi.mu.Unlock()
	delete(mi.waiters, w)
}

// settle wakes the waiters whose epoch is complete.
func (mi *mirror) settle() {
	mi.mu.Lock()
	defer mi.mu.Unlock()
	for w := range mi.waiters {
		if w.synced && mi.epochs.complete(w.epoch) {
			mi.wake(w, nil)
		}
	}
}

// wake ends a wait; mu is held.
func (mi *mirror) wake(w *waiter, err error) {
	delete(mi.waiters, w)
	w.err = err
	close(w.done)
}
