package watch

import (
	"container/list"
	"fmt"
)

// TreeEventType says what has become of a znode in a Cache.
type TreeEventType uint8

const (
	// Added: it is there, and was not when it was last told of.
	Added TreeEventType = iota + 1
	// Changed: its data is another than was last told, it was deleted and made
	// again, or whether it can be read has changed.
	Changed
	// Removed: it is not there any more.
	Removed
)

var treeEventTypeNames = [...]string{Added: "Added", Changed: "Changed", Removed: "Removed"}

func (t TreeEventType) String() string {
	if int(t) < len(treeEventTypeNames) && t > 0 {
		return treeEventTypeNames[t]
	}
	return fmt.Sprintf("TreeEventType(%d)", uint8(t))
}

// A TreeEvent is a change of one znode in a Cache. The events of one znode come
// in the order of zxids, and those of several so that whoever applies them always
// has a tree: a znode is Added after its parent, and Removed after everything that
// was below it. Beyond that the order is that in which the Cache has read them.
type TreeEvent struct {
	Type TreeEventType
	State
	// Err is why the data or the children cannot be read, as zk.ErrNoAuth; nil
	// otherwise. State has what there is.
	Err error
}

// news is what the reader of Events has not been told: the paths, in order.
type news struct {
	told    map[string]toldState // what the reader knows to be there
	order   *list.List           // of paths
	pending map[string]*list.Element
	offered string        // what the reader may be receiving right now
	wake    chan struct{} // for the pump: there is something new
}

type toldState struct {
	stamp
	refused bool
}

func (w *news) init() {
	w.told = make(map[string]toldState)
	w.order, w.pending = list.New(), make(map[string]*list.Element)
	w.wake = make(chan struct{}, 1)
}

// mark notes that a znode has come, changed or gone. There is one entry for a
// path, so what is not told does not pile up, and what came and went without being
// told is forgotten.
func (c *Cache) mark(path string, gone bool) {
	w := &c.news
	e := w.pending[path]
	_, told := w.told[path]
	switch {
	case gone && !told && path != w.offered:
		if e != nil {
			w.order.Remove(e)
			delete(w.pending, path)
		}
		return
	case e == nil:
		w.pending[path] = w.order.PushBack(path)
	case gone:
		// Behind the removal of what was below it.
		w.order.MoveToBack(e)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// offer returns the next event.
func (c *Cache) offer() (TreeEvent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.news
	w.offered = ""
	for e := w.order.Front(); e != nil; e = w.order.Front() {
		path := e.Value.(string)
		ev, now := c.present(path)
		before, told := w.told[path]
		switch {
		case ev.Exists && !told:
			ev.Type = Added
		case ev.Exists && now != before:
			ev.Type = Changed
		case !ev.Exists && told:
			ev.Type = Removed
		default:
			w.order.Remove(e)
			delete(w.pending, path)
			continue
		}
		w.offered = path
		return ev, true
	}
	return TreeEvent{}, false
}

// present is what there is to tell of a path.
func (c *Cache) present(path string) (TreeEvent, toldState) {
	n := c.nodes[path]
	if n == nil || !n.visible {
		return TreeEvent{State: State{Path: path}}, toldState{}
	}
	err := n.failure()
	return TreeEvent{State: n.state, Err: err}, toldState{n.state.stamp(), err != nil}
}

// received notes that the reader knows an event. If there is more to tell of
// that path by now, its entry stays.
func (c *Cache) received(ev TreeEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ev.Type == Removed {
		delete(c.news.told, ev.Path)
	} else {
		c.news.told[ev.Path] = toldState{ev.stamp(), ev.Err != nil}
	}
	c.news.offered = ""
}

// pump hands the events to their reader.
func (c *Cache) pump() {
	defer close(c.events)
	for {
		ev, any := c.offer()
		var out chan<- TreeEvent
		if any {
			out = c.events
		}
		select {
		case out <- ev:
			c.received(ev)
		case <-c.news.wake:
		case <-c.over:
			return
		}
	}
}
