package zkserver

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// watchKind is one of the two tables: getData and exists arm in one, getChildren
// in the other, addWatch in both.
type watchKind int

const (
	dataWatch watchKind = iota
	childWatch
)

// watchMode is the set of ways in which a connection watches a path.
type watchMode uint8

const (
	oneShot watchMode = 1 << iota
	persistent
	recursive
	anyMode = oneShot | persistent | recursive
)

// watchTable has the connections that watch a path. In which modes one does is
// known from the connection's own set.
type watchTable struct {
	paths     map[string]watchers
	most      int // paths there were at once, as far as it was looked at
	recursive int // how many of the watches are recursive
}

func newWatchTable() watchTable { return watchTable{paths: map[string]watchers{}} }

func (t *watchTable) size() int {
	n := 0
	for _, w := range t.paths {
		n += w.size()
	}
	return n
}

// arm leaves a watch; a second one of the same mode for the same path is the same
// watch. Before 3.9 there was one mode for a path, the latest.
func (s *Server) arm(c *conn, kind watchKind, path string, mode watchMode) {
	if c.closed {
		return
	}
	had := c.watches[kind][path]
	if s.cfg.Compat38 {
		s.setModes(c, kind, path, mode)
	} else if had&mode == 0 {
		s.setModes(c, kind, path, had|mode)
	}
}

// disarm removes the watches of c that have one of modes, and says whether there
// were any.
func (s *Server) disarm(c *conn, kind watchKind, path string, modes watchMode) bool {
	had := c.watches[kind][path]
	if had&modes == 0 {
		return false
	}
	s.setModes(c, kind, path, had&^modes)
	return true
}

// setModes makes modes the ways in which c watches path.
func (s *Server) setModes(c *conn, kind watchKind, path string, modes watchMode) {
	set := c.watches[kind]
	had := set[path]
	switch {
	case modes == 0:
		delete(set, path)
	case set == nil:
		c.watches[kind] = map[string]watchMode{path: modes}
	default:
		set[path] = modes
	}
	table := &c.rep.watches[kind]
	table.countRecursive(had, modes)
	switch {
	case had == 0 && modes != 0:
		table.list(c, path)
	case had != 0 && modes == 0:
		table.unlist(c, path)
	}
}

func (t *watchTable) countRecursive(had, modes watchMode) {
	if had&recursive != 0 {
		t.recursive--
	}
	if modes&recursive != 0 {
		t.recursive++
	}
}

func (t *watchTable) list(c *conn, path string) {
	w := t.paths[path]
	w.add(c)
	t.paths[path] = w
}

func (t *watchTable) unlist(c *conn, path string) {
	w := t.paths[path]
	w.remove(c)
	t.keep(path, w)
}

// keep has w watch path, if anybody is left.
func (t *watchTable) keep(path string, w watchers) {
	if w.size() > 0 {
		t.paths[path] = w
		return
	}
	t.most = max(t.most, len(t.paths))
	delete(t.paths, path)
	if len(t.paths) == 0 && t.most > keptSegments {
		t.paths, t.most = map[string]watchers{}, 0 // a map keeps the room for all it had
	}
}

// unlistAll takes the watches of c out of the tables of its replica, so that
// nothing fires them from now on.
func (s *Server) unlistAll(c *conn) {
	for kind := range c.watches {
		table := &c.rep.watches[kind]
		for path, modes := range c.watches[kind] {
			table.countRecursive(modes, 0)
			table.unlist(c, path)
		}
	}
}

// listAll is the reverse of unlistAll, in a defined order.
func (s *Server) listAll(c *conn) {
	for kind := range c.watches {
		table := &c.rep.watches[kind]
		for _, path := range watchPaths(c.watches[kind]) {
			table.countRecursive(0, c.watches[kind][path])
			table.list(c, path)
		}
	}
}

// dropWatches is what happens to the watches of a connection that ends.
func (s *Server) dropWatches(c *conn) {
	s.unlistAll(c)
	c.watches = [2]map[string]watchMode{}
}

// fireOn sends the events of one change to the watches of a replica.
func (s *Server) fireOn(r *replica, e *change, zxid int64) {
	switch e.kind {
	case EventDataChanged:
		s.trigger(r, dataWatch, e.path, EventDataChanged, zxid, e.acl)
	case EventCreated:
		s.trigger(r, dataWatch, e.path, EventCreated, zxid, e.acl)
		s.triggerParent(r, e, zxid)
	case EventDeleted:
		s.trigger(r, dataWatch, e.path, EventDeleted, zxid, e.acl)
		// Who has had the event from the one table does not get it from the other.
		s.triggerMore(r, childWatch, e.path, EventDeleted, zxid, e.acl)
		s.triggerParent(r, e, zxid)
	}
}

func (s *Server) triggerParent(r *replica, e *change, zxid int64) {
	parent := e.parent
	if parent == "" {
		parent = "/"
	}
	s.trigger(r, childWatch, parent, EventChildrenChanged, zxid, e.parentACL)
}

// trigger sends an event to the watches of path in one table, and uses up those
// that are good for one.
func (s *Server) trigger(r *replica, kind watchKind, path string, ev EventType, zxid int64, acl []ACL) {
	s.occasion++
	s.triggerMore(r, kind, path, ev, zxid, acl)
}

// triggerMore goes on with the event of the last trigger.
func (s *Server) triggerMore(r *replica, kind watchKind, path string, ev EventType, zxid int64, acl []ACL) {
	table := &r.watches[kind]
	if w, ok := table.paths[path]; ok {
		w.filter(func(c *conn) bool {
			modes := c.watches[kind][path]
			if ev != EventChildrenChanged || modes != recursive {
				s.tell(c, ev, path, zxid, acl)
			}
			if modes &^= oneShot; modes == 0 {
				delete(c.watches[kind], path)
				return false
			}
			c.watches[kind][path] = modes
			return true
		})
		table.keep(path, w)
	}
	if table.recursive == 0 || ev == EventChildrenChanged {
		return
	}
	for above := path; above != "/" && above != ""; {
		if above = above[:max(strings.LastIndexByte(above, '/'), 0)]; above == "" {
			above = "/"
		}
		for c := range table.paths[above].all() {
			if c.watches[kind][above]&recursive != 0 {
				s.tell(c, ev, path, zxid, acl)
			}
		}
	}
}

// tell sends an event to c, once only, and if it may know.
func (s *Server) tell(c *conn, ev EventType, path string, zxid int64, acl []ACL) {
	if c.told == s.occasion {
		return
	}
	c.told = s.occasion
	if s.cfg.Compat38 {
		zxid = jute.NoZxid
	}
	if allowed(acl, jute.PermRead, c.ids) {
		s.notify(c, ev, path, zxid)
	}
}

// notify queues an event for c. Nothing here waits for a reader.
func (s *Server) notify(c *conn, ev EventType, path string, zxid int64) {
	s.scratch = jute.AppendEvent(s.scratch[:0], ev, path, zxid)
	s.countSent(c)
	hits, op := s.watchHits(c, ev, path, zxid)
	c.out.pushEvent(s.scratch, hits, op, true)
	s.checkQueue(c)
}

// watchPaths lists in a defined order.
func watchPaths(set map[string]watchMode) []string { return slices.Sorted(maps.Keys(set)) }
