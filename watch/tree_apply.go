package watch

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// applyData takes in what was read of a znode itself. mu is held.
func (c *Cache) applyData(n *node, a answer, epoch uint64) {
	sd := &n.sides[dataSide]
	switch {
	case errors.Is(a.err, zk.ErrNoNode):
		// It may have been made again since, and its parent been read in between:
		// only a list that is read from now on can tell.
		c.want(n.parent, listSide, c.owed(n, dataSide, epoch))
		return
	case a.err != nil && n == c.top:
		c.cancel(a.err)
		return
	case a.err == nil && !a.state.Exists: // the root alone
		c.drop(n)
		c.hide(n)
		n.state, n.read, sd.refused = a.state, false, nil
		if n.sides[listSide].armed {
			// The list was there before or after this answer was given, and if it was
			// after, what it said has just been dropped.
			c.want(n, listSide, epoch)
		}
		return
	case a.err != nil:
		a.state = State{Path: n.path, Exists: true}
	}
	changed := n.state.stamp() != a.state.stamp() || (sd.refused == nil) != (a.err == nil)
	n.state, n.read, n.since, sd.refused = a.state, true, sd.asked, a.err
	switch {
	case !n.visible:
		c.reveal(n)
	case changed:
		c.mark(n.path, false)
	}
	c.need(n, listSide, epoch)
}

// applyList takes in what was read of a znode's children. mu is held.
func (c *Cache) applyList(n *node, a answer, epoch uint64) {
	sd := &n.sides[listSide]
	if a.err != nil {
		c.listRefused(n, a.err, epoch)
		return
	}
	if sd.refused != nil {
		sd.refused = nil
		if n.visible {
			c.mark(n.path, false)
		}
	}
	names := make(map[string]struct{}, len(a.names))
	for _, name := range a.names {
		names[name] = struct{}{}
	}
	for name, child := range n.children {
		if _, there := names[name]; !there {
			c.remove(child)
			delete(n.children, name)
		}
	}
	for _, name := range a.names {
		child := n.children[name]
		if child == nil {
			child = c.grow(n, name)
		}
		c.need(child, dataSide, epoch)
		c.need(child, listSide, epoch)
	}
	c.need(n, dataSide, epoch)
}

func (c *Cache) listRefused(n *node, err error, epoch uint64) {
	switch {
	case errors.Is(err, zk.ErrNoNode) && n == c.top:
		c.drop(n)
		if n.state.Exists && n.sides[dataSide].armed {
			// This answer is of before the root was made and has been overtaken by that
			// of the data side, or the data side is about to hear that the root is gone.
			c.want(n, listSide, epoch)
		} else {
			c.need(n, dataSide, epoch)
		}
	case errors.Is(err, zk.ErrNoNode):
		c.want(n.parent, listSide, c.owed(n, listSide, epoch))
	case n == c.top:
		c.cancel(err)
	default:
		// Without the list nobody says what is there, or no longer is.
		c.drop(n)
		sd := &n.sides[listSide]
		if sd.refused == nil && n.visible {
			c.mark(n.path, false)
		}
		sd.refused = err
	}
}

// owed is the epoch in which it is to be found out what has become of n, a side of
// which was not there when it was read in the given epoch. Who was waiting already when
// what the mirror shows of n was asked for, or if that is nothing, this side, has seen
// enough: otherwise short-lived znodes, each of them named by the list that is read
// because of the last, would keep WaitSynced for ever.
func (c *Cache) owed(n *node, side int, epoch uint64) uint64 {
	if n.read {
		return max(epoch, n.since)
	}
	return max(epoch, n.sides[side].asked)
}
