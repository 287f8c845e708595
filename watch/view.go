package watch

import (
	"slices"
	"sync"
)

// A view is the part of a mirror that the callers of a Cache see: the visible
// nodes, and the events that were not received. The mirror changes it, under mu.
type view struct {
	mu    sync.Mutex
	nodes map[string]*treeNode // the visible ones, by path
	news  news
}

func newView() *view {
	return &view{nodes: make(map[string]*treeNode), news: newNews()}
}

func (v *view) get(path string) (State, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := v.nodes[path]; n != nil {
		return n.state, true
	}
	return State{Path: path}, false
}

func (v *view) childNames(path string) ([]string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.nodes[path]
	if n == nil {
		return nil, false
	}
	names := make([]string, 0, len(n.children))
	for name, child := range n.children {
		if child.visible {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, true
}

func (v *view) size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.nodes)
}

// next returns the next event for the receiver, and false while no event is pending.
func (v *view) next() (TreeEvent, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.news.next(v.nodes)
}

func (v *view) received(ev TreeEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.news.received(ev)
}

// reveal makes a node visible if possible, with the nodes below it that were read
// already; mu is held.
func (v *view) reveal(n *treeNode) {
	if n.visible || !n.read || n.parent != nil && !n.parent.visible {
		return
	}
	n.visible = true
	v.nodes[n.path] = n
	v.news.mark(n.path, false)
	for _, name := range sortedKeys(n.children) {
		v.reveal(n.children[name])
	}
}

// hide removes a node from the view; mu is held. The nodes below it were hidden
// before.
func (v *view) hide(n *treeNode) {
	if n.visible {
		n.visible = false
		delete(v.nodes, n.path)
		v.news.mark(n.path, true)
	}
}
