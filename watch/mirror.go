package watch

import (
	"container/list"
	"context"
	"maps"
	"slices"

	"github.com/go-zksync/toolkit/session"
)

// A mirror keeps a tree of nodes equal to a subtree on the server. One goroutine
// does so, in the order in which the connection delivers answers and events.
type mirror struct {
	m    *session.Manager
	root string
	view *view

	ctx  context.Context // as given to Tree
	over context.Context // ends with the Cache, whose Err is its cause
	end  context.CancelCauseFunc

	// Of the goroutine alone:
	in      *session.Inbox
	top     *treeNode
	epochs  epochs
	synced  *list.List // of the waiters whose syncs were answered, by epoch
	listing uint64     // the number of lists that were applied

	waiters waiters
}

func newMirror(ctx context.Context, m *session.Manager, root string, v *view) *mirror {
	mi := &mirror{
		m: m, root: root, view: v, ctx: ctx,
		top: newTreeNode(nil, root, ""), waiters: waiters{all: make(map[*waiter]struct{})},
	}
	mi.over, mi.end = context.WithCancelCause(context.Background())
	// Nothing else announces the root.
	mi.top.sides[dataSide].awaited = true
	return mi
}

// run follows the root over one session after the other.
func (mi *mirror) run() { mi.finish(followSessions(mi.ctx, mi.m, mi.begin, mi.apply)) }

// finish ends the mirror.
func (mi *mirror) finish(why error) { mi.end(ended(mi.ctx, "tree", mi.root, why)) }

// settle wakes the waiters whose epoch is complete.
func (mi *mirror) settle() {
	// The epochs only grow from the first waiter to the last, so a delivery costs no look at each
	// of them.
	for e := mi.synced.Front(); e != nil && mi.epochs.complete(e.Value.(*waiter).epoch); e = mi.synced.Front() {
		mi.waiters.wake(mi.synced.Remove(e).(*waiter), nil)
	}
}

// await has a waiter wait for the sides that are asked of the epoch or an older one.
func (mi *mirror) await(w *waiter, epoch uint64) {
	w.epoch, w.place = epoch, mi.synced.PushBack(w)
}

// begin asks for every side by the Inbox of another session: the watches of the former one are gone.
// Between sessions the Inbox is nil.
func (mi *mirror) begin(in *session.Inbox) {
	mi.in = in
	waiting := mi.waiters.setInbox(in)
	if in == nil {
		return
	}
	// No answer to a request of the former session arrives any more.
	mi.epochs.restart()
	mi.synced = list.New()
	for _, w := range waiting {
		// A waiter whose sync was answered waits for the sides that become asked below: they
		// show everything that the sync has shown.
		if w.place != nil {
			mi.await(w, mi.epochs.now)
		} else {
			w.sync = mi.in.SyncQuorum(mi.root, w)
		}
	}
	mi.askAll(mi.top)
	mi.epochs.next()
}

// askAll asks for n and then for everything below it.
func (mi *mirror) askAll(n *treeNode) {
	for kind := range n.sides {
		// Not by forget, which would count the side as answered: restart has dropped the
		// counts, and the Inbox of the former session has stopped its reads and watches.
		n.sides[kind].state = unasked
		mi.need(&n.sides[kind], mi.epochs.now)
	}
	for _, name := range n.childNames() {
		mi.askAll(n.children[name])
	}
}

// A treeNode is the mirror's state of a znode. The mirror's goroutine alone changes
// it.
type treeNode struct {
	path   string
	name   string
	parent *treeNode
	sides  [2]treeSide // by sideKind
	read   bool        // state was read, or refused, perhaps in an earlier session
	listed uint64      // the listing of the parent that has named the znode last

	// Changed under the view's mu, so that others may read them under it:
	children map[string]*treeNode
	state    State
	failure  error // why something about the znode cannot be read
	visible  bool  // in the view: read, as is everything above
}

// A treeSide is a side of a treeNode.
type treeSide struct {
	side
	node  *treeNode
	epoch uint64 // while asked
}

func newTreeNode(parent *treeNode, path, name string) *treeNode {
	n := &treeNode{path: path, name: name, parent: parent}
	for kind := range n.sides {
		n.sides[kind] = treeSide{node: n, side: side{kind: sideKind(kind)}}
	}
	return n
}

// child returns a new node for a child, which n does not have yet.
func (n *treeNode) child(name string) *treeNode {
	path := n.path + "/" + name
	if n.path == "/" {
		path = "/" + name
	}
	// All names of a list share one string, so a node keeps the part of its own path and
	// not the name from the list.
	return newTreeNode(n, path, path[len(path)-len(name):])
}

// childNames returns the names of the children, in an order that is the same in every run.
func (n *treeNode) childNames() []string { return slices.Sorted(maps.Keys(n.children)) }

// refusal returns why a side is refused, or nil.
func (n *treeNode) refusal() error {
	for kind := range n.sides {
		// A side that is asked again is unknown until the answer.
		if sd := &n.sides[kind]; sd.side.refusal != nil {
			return sd.side.refusal
		}
	}
	return nil
}
