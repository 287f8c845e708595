package watch

import "container/list"

// news are the paths about which the receiver of a Cache's events has more to
// learn, in order. A path has one entry, so events that are not received do not pile
// up.
type news struct {
	told    map[string]toldState // the znodes that the receiver knows to exist
	order   *list.List           // of paths
	pending map[string]*list.Element
	offered string        // the path of the event that is being received, or ""
	wake    chan struct{} // has a buffer of one; filled behind a mark
}

type toldState struct {
	stamp
	failed bool
}

func newNews() news {
	return news{
		told: make(map[string]toldState), order: list.New(),
		pending: make(map[string]*list.Element), wake: make(chan struct{}, 1),
	}
}

// mark notes that a znode has appeared, changed or gone. A znode that came and
// went without being told is forgotten.
func (w *news) mark(path string, gone bool) {
	e := w.pending[path]
	_, told := w.told[path]
	switch {
	case gone && !told && path != w.offered:
		if e != nil {
			w.drop(path, e)
		}
		return
	case e == nil:
		w.pending[path] = w.order.PushBack(path)
	case gone:
		// Behind the removal of everything below.
		w.order.MoveToBack(e)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *news) drop(path string, e *list.Element) {
	w.order.Remove(e)
	delete(w.pending, path)
}

// next returns the next event, made from the nodes that are visible now.
func (w *news) next(nodes map[string]*treeNode) (TreeEvent, bool) {
	w.offered = ""
	for e := w.order.Front(); e != nil; e = w.order.Front() {
		path := e.Value.(string)
		ev := TreeEvent{State: State{Path: path}}
		if n := nodes[path]; n != nil {
			ev.State, ev.Err = n.state, n.failure
		}
		before, told := w.told[path]
		switch {
		case ev.Exists && !told:
			ev.Type = Added
		case ev.Exists && before != ev.told():
			ev.Type = Changed
		case !ev.Exists && told:
			ev.Type = Removed
		default:
			w.drop(path, e)
			continue
		}
		w.offered = path
		return ev, true
	}
	return TreeEvent{}, false
}

func (ev *TreeEvent) told() toldState { return toldState{ev.stamp(), ev.Err != nil} }

// received notes that the receiver knows an event. The entry of the path stays: if
// there is no more to tell of the path by now, next drops it.
func (w *news) received(ev TreeEvent) {
	if ev.Type == Removed {
		delete(w.told, ev.Path)
	} else {
		w.told[ev.Path] = ev.told()
	}
	w.offered = ""
}
