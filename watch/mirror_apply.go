package watch

import (
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/session"
)

// apply applies one delivery. It fails when the root is refused.
func (mi *mirror) apply(d *session.Delivery) (err error) {
	switch tag := d.Tag.(type) {
	case *waiter:
		mi.applyWaiter(tag, d)
	case *treeSide:
		err = mi.applySide(tag, d)
	}
	// A new connection has no tag. It changes no side: the session arms the watches again,
	// and the server sends the events of the time in between.
	if err == nil {
		mi.settle()
	}
	return err
}

// applyWaiter takes a waiter's Post, and then the answer to its sync.
func (mi *mirror) applyWaiter(w *waiter, d *session.Delivery) {
	switch {
	// Here and not in WaitSynced: only this goroutine may send requests through the Inbox.
	case d.Kind == session.InboxPost && mi.waiters.waits(w):
		w.sync = mi.in.SyncQuorum(mi.root, w)
	case d.Kind == session.InboxPost:
		if w.sync != nil {
			w.sync.Stop()
		}
		if w.place != nil {
			mi.synced.Remove(w.place)
		}
	case d.Err != nil:
		mi.waiters.wake(w, d.Err)
	default:
		// The events of everything that was committed before the sync have been delivered by
		// now. So the armed sides are new enough, and the waiter waits for the asked sides.
		mi.await(w, mi.epochs.next())
	}
}

func (mi *mirror) applySide(sd *treeSide, d *session.Delivery) error {
	n := sd.node
	switch sd.deliver(d, mi.in, n.path) {
	case nothing:
	case changed:
		mi.becameAsked(sd, mi.epochs.now)
	case denied:
		mi.epochs.answered(sd.epoch)
		if n == mi.top {
			return sd.side.refusal
		}
		mi.applyRefusal(sd)
	case absent:
		mi.applyAbsence(sd)
	case present:
		mi.epochs.answered(sd.epoch)
		if sd.kind == dataSide {
			return mi.applyData(sd, d)
		}
		return mi.applyList(sd, d)
	}
	return nil
}

// applyAbsence takes the news that a znode does not exist.
func (mi *mirror) applyAbsence(sd *treeSide) {
	n := sd.node
	// The news is always true: if the znode was created again, the list of its parent is
	// asked or has named the new znode.
	switch {
	case n != mi.top:
		mi.remove(n)
	case sd.kind == dataSide:
		// Only the answer to the look for the root leads here, and that answer has armed
		// the watch for the creation.
		mi.epochs.answered(sd.epoch)
		mi.vanish()
	default:
		// The data side finds out whether the root exists: it asks, or has asked.
		mi.forget(sd)
		if data := &n.sides[dataSide]; data.input(change, mi.in, n.path, data) {
			mi.becameAsked(data, mi.epochs.now)
		}
	}
}

// vanish empties the mirror: the root does not exist, and its data side waits for
// its creation.
func (mi *mirror) vanish() {
	mi.clear(mi.top)
	mi.forget(&mi.top.sides[listSide])
	mi.view.mu.Lock()
	defer mi.view.mu.Unlock()
	mi.view.hide(mi.top)
	mi.top.state, mi.top.read = State{Path: mi.root}, false
}

// applyRefusal takes a refusal that is final. Without its data a znode is known to
// exist; without its list nothing is known of its children.
func (mi *mirror) applyRefusal(sd *treeSide) {
	n := sd.node
	if sd.kind == listSide {
		// No watch reports new children any more, so the children could only be shown in
		// part.
		mi.clear(n)
	}
	mi.update(n, func() {
		if sd.kind == dataSide {
			n.state, n.read = State{Path: n.path, Exists: true}, true
		}
	})
}

func (mi *mirror) applyData(sd *treeSide, d *session.Delivery) error {
	n := sd.node
	state, err := decodeState(d, n.path)
	if err != nil {
		return err
	}
	mi.update(n, func() { n.state, n.read = state, true })
	// The root may have been created just now: its list was not asked while the root did
	// not exist. A list that was refused may have become readable.
	mi.need(&n.sides[listSide], sd.epoch)
	return nil
}

// applyList adds and removes children.
func (mi *mirror) applyList(sd *treeSide, d *session.Delivery) error {
	n := sd.node
	names, _, err := d.Names()
	if err != nil {
		return err
	}
	// Without the view's mu: the list may be long and differ little.
	mi.listing++
	var added, doubtful []*treeNode
	known := 0
	for name := range names {
		child := n.children[name]
		switch {
		case child == nil:
			added = append(added, n.child(name))
		// A refused side has no watch, so nothing reports that its ACL was opened.
		case child.refusal() != nil:
			doubtful = append(doubtful, child)
			fallthrough
		default:
			child.listed = mi.listing
			known++
		}
	}
	// Usually every child was named, and the names of a large directory need not be sorted.
	if known < len(n.children) {
		for _, name := range n.childNames() {
			if child := n.children[name]; child.listed != mi.listing {
				mi.remove(child)
			}
		}
	}
	slices.SortFunc(added, func(a, b *treeNode) int { return strings.Compare(a.name, b.name) })
	mi.update(n, func() {
		for _, child := range added {
			if n.children == nil {
				n.children = make(map[string]*treeNode)
			}
			n.children[child.name] = child
		}
	})
	// A new child inherits the epoch of the list: a waiter that waits for the list
	// also waits for the children that the list names.
	for _, child := range slices.Concat(added, doubtful) {
		mi.need(&child.sides[dataSide], sd.epoch)
		// A list that was too large would break connections again, of all callers.
		if list := &child.sides[listSide]; !session.IsAnswerTooLarge(list.side.refusal) {
			mi.need(list, sd.epoch)
		}
	}
	// As for the children: the data may have become readable.
	mi.need(&n.sides[dataSide], sd.epoch)
	return nil
}

// need has a side asked unless it is known, or is asked already.
func (mi *mirror) need(sd *treeSide, epoch uint64) {
	if sd.input(need, mi.in, sd.node.path, sd) {
		mi.becameAsked(sd, epoch)
	}
}

// becameAsked counts a side that has become asked.
func (mi *mirror) becameAsked(sd *treeSide, epoch uint64) {
	sd.epoch = epoch
	mi.epochs.asked(epoch)
}

// forget makes a side unasked.
func (mi *mirror) forget(sd *treeSide) {
	// remove and vanish give up the request, so its answer would never be counted.
	if sd.state == asked {
		mi.epochs.answered(sd.epoch)
	}
	sd.input(vanished, mi.in, sd.node.path, sd)
}

// update changes the view of a node.
func (mi *mirror) update(n *treeNode, change func()) {
	mi.view.mu.Lock()
	defer mi.view.mu.Unlock()
	// A side that is read again in the next session often shows the same state, which is no
	// event.
	before, failed := n.state.stamp(), n.failure != nil
	change()
	n.failure = n.refusal()
	switch {
	case !n.visible:
		mi.view.reveal(n)
	case before != n.state.stamp() || failed != (n.failure != nil):
		mi.view.mark(n.path, false)
	}
}

// clear removes everything below n.
func (mi *mirror) clear(n *treeNode) {
	for _, name := range n.childNames() {
		mi.remove(n.children[name])
	}
}

// remove removes n and everything below it, from the bottom up.
func (mi *mirror) remove(n *treeNode) {
	mi.clear(n)
	for kind := range n.sides {
		mi.forget(&n.sides[kind])
	}
	mi.view.mu.Lock()
	defer mi.view.mu.Unlock()
	mi.view.hide(n)
	delete(n.parent.children, n.name)
}
