package tree

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Due lists the containers and TTL nodes whose time has come: the containers first, and
// both in the order of their paths.
func (s *Store) Due(now time.Time) []string {
	var list []string
	for path := range s.reapable {
		if wait, may := s.ReapWait(s.nodes[path], now); may && wait < 0 {
			list = append(list, path)
		}
	}
	ofTTL := func(path string) int {
		if s.nodes[path].Owner == ownerContainer {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(ofTTL(a), ofTTL(b)), cmp.Compare(a, b)) })
	return list
}

// ReapWait returns the milliseconds until n is to be reaped, which are negative if its time
// has come. may is false if n is not to be reaped unless a client writes.
func (s *Store) ReapWait(n *Node, now time.Time) (wait int64, may bool) {
	age := now.UnixMilli() - n.mtime
	switch {
	case len(n.Children()) > 0:
		return 0, false
	case n.Owner != ownerContainer:
		return n.Owner&maxTTL - age, true
	case n.creates > 0:
		return -1, true
	case s.Rules.NeverUsed > 0:
		return s.Rules.NeverUsed.Milliseconds() - age, true
	}
	return 0, false
}

// Mortal are the containers and TTL nodes, in no order.
func (t *Tree) Mortal() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for path := range t.reapable {
			if !yield(t.nodes[path]) {
				return
			}
		}
	}
}
