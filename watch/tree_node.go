package watch

import (
	"github.com/go-zksync/toolkit/session"
)

// The two sides of a znode are read, watched and known independently.
const (
	dataSide = iota
	listSide
)

// A node is what the mirror knows of a znode.
type node struct {
	path     string
	name     string
	parent   *node
	children map[string]*node
	state    State
	since    uint64 // the tally's epoch when state was asked for
	read     bool   // state has been read, or refused, be it in an earlier session
	visible  bool   // it is in the mirror: read, and so is everything above it
	gone     bool   // it is not there any more
	sides    [2]side
}

// A side is read by one worker at a time, so that its results come in order.
// It is idle, or queued, or being read. An idle one that is not armed waits for the
// list of its parent, which says whether there is still something to read.
type side struct {
	busy    bool // queued or being read
	reading bool
	again   bool // has changed while it was read
	armed   bool // its watch will tell
	w       *session.Watch
	doubt   bool   // it was asked for again while it was read
	asked   uint64 // the tally's epoch when it was last asked for
	epoch   uint64 // of the tally, while busy
	next    uint64 // with which to read again
	refused error  // why it cannot be read
}

// failure is why something about the znode cannot be read.
func (n *node) failure() error {
	if err := n.sides[dataSide].refused; err != nil {
		return err
	}
	return n.sides[listSide].refused
}

// giveUp adds the watches that are armed to a list.
func (n *node) giveUp(list []*session.Watch) []*session.Watch {
	for k := range n.sides {
		if n.sides[k].armed {
			list = append(list, n.sides[k].w)
		}
		n.sides[k].armed, n.sides[k].w = false, nil
	}
	return list
}

// reveal puts a node into the mirror, and what was read below it already.
func (c *Cache) reveal(n *node) {
	if n.visible || !n.read || n.parent != nil && !n.parent.visible {
		return
	}
	n.visible = true
	c.visible++
	c.mark(n.path, false)
	for _, child := range n.children {
		c.reveal(child)
	}
}

// hide takes a node out of the mirror.
func (c *Cache) hide(n *node) {
	if n.visible {
		n.visible = false
		c.visible--
		c.mark(n.path, true)
	}
}

// drop removes everything below n.
func (c *Cache) drop(n *node) {
	for _, child := range n.children {
		c.remove(child)
	}
	n.children = nil
}

// remove removes n and everything below it, from the bottom up. Its parent
// forgets it.
func (c *Cache) remove(n *node) {
	c.drop(n)
	n.gone = true
	c.hide(n)
	delete(c.nodes, n.path)
	c.given = n.giveUp(c.given)
}

// grow adds a child that has just been heard of.
func (c *Cache) grow(parent *node, name string) *node {
	n := &node{path: join(parent.path, name), name: name, parent: parent}
	if parent.children == nil {
		parent.children = make(map[string]*node)
	}
	parent.children[name] = n
	c.nodes[n.path] = n
	return n
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}
