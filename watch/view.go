package watch

import (
	"container/list"
	"sync"
)

// A view is the part of a mirror that the callers of a Cache see: the visible
// nodes, and the events that were not received. The mirror changes it, under mu.
type view struct {
	mu    sync.Mutex
	nodes map[string]*treeNode // the visible ones, by path

	// The paths about which the receiver of the events has more to learn, in order. A path
	// has one entry, so events that are not received do not pile up.
	order   *list.List // of paths
	pending map[string]*list.Element
	told    map[string]toldState // the znodes that the receiver knows to exist
	offered string               // the path of the event that is being received, or ""
	wake    chan struct{}        // has a buffer of one; filled after a mark
}

type toldState struct {
	stamp
	failed bool
}

func newView() *view {
	return &view{
		nodes: make(map[string]*treeNode), told: make(map[string]toldState), order: list.New(),
		pending: make(map[string]*list.Element), wake: make(chan struct{}, 1),
	}
}

// reveal makes a node visible if possible, with the nodes below it that were read
// already; mu is held.
func (v *view) reveal(n *treeNode) {
	// The answers about a parent and its child come in any order, and a child must not be
	// shown without its parent.
	if n.visible || !n.read || n.parent != nil && !n.parent.visible {
		return
	}
	n.visible = true
	v.nodes[n.path] = n
	v.mark(n.path, false)
	for _, name := range n.childNames() {
		v.reveal(n.children[name])
	}
}

// hide removes a node from the view; mu is held. The nodes below it were hidden
// before.
func (v *view) hide(n *treeNode) {
	if n.visible {
		n.visible = false
		delete(v.nodes, n.path)
		v.mark(n.path, true)
	}
}

// mark notes that a znode has appeared, changed or gone; mu is held.
func (v *view) mark(path string, gone bool) {
	e := v.pending[path]
	_, told := v.told[path]
	switch {
	case gone && !told && path != v.offered:
		// The receiver never learned of the znode, and must not learn of its removal.
		if e != nil {
			v.drop(path, e)
		}
		return
	case e == nil:
		v.pending[path] = v.order.PushBack(path)
	case gone:
		// Behind the removal of everything below.
		v.order.MoveToBack(e)
	}
	select {
	case v.wake <- struct{}{}:
	default: // a wake-up that is pending covers this mark, too
	}
}

func (v *view) drop(path string, e *list.Element) {
	v.order.Remove(e)
	delete(v.pending, path)
}

// next returns the next event, made from the nodes that are visible now, and false while
// no event is pending.
func (v *view) next() (TreeEvent, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// pump is here, so no event is being received.
	v.offered = ""
	for e := v.order.Front(); e != nil; e = v.order.Front() {
		path := e.Value.(string)
		ev := TreeEvent{State: State{Path: path}}
		if n := v.nodes[path]; n != nil {
			ev.State, ev.Err = n.state, n.failure
		}
		before, told := v.told[path]
		switch {
		case ev.Exists && !told:
			ev.Type = Added
		case ev.Exists && before != ev.told():
			ev.Type = Changed
		case !ev.Exists && told:
			ev.Type = Removed
		// Changes that cancel each other out, for example a creation and a deletion that
		// nobody has received.
		default:
			v.drop(path, e)
			continue
		}
		v.offered = path
		return ev, true
	}
	return TreeEvent{}, false
}

func (ev *TreeEvent) told() toldState { return toldState{ev.stamp(), ev.Err != nil} }

// received notes that the receiver knows an event.
func (v *view) received(ev TreeEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if ev.Type == Removed {
		delete(v.told, ev.Path)
	} else {
		v.told[ev.Path] = ev.told()
	}
	// The entry of the path stays, because the znode may have changed since the event was
	// made. If it has not, next drops the entry.
	v.offered = ""
}
