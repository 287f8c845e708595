package zkserver

import (
	"maps"
	"slices"
)

// eventType is the type of a watch event on the wire.
type eventType int32

const (
	eventCreated         eventType = 1
	eventDeleted         eventType = 2
	eventDataChanged     eventType = 3
	eventChildrenChanged eventType = 4
)

const (
	watchXid    = -1
	noZxid      = -1
	stateSynced = 3
)

// watchKind is one of the two tables: getData and exists arm in one, getChildren
// in the other.
type watchKind int

const (
	dataWatch watchKind = iota
	childWatch
)

// watchTable has the connections that watch a path, in the order in which they
// began to: a defined order makes runs repeatable. Whether a connection is in a
// list is known from the connection's own set.
type watchTable map[string][]*conn

// arm leaves a one-shot watch; a second one for the same path is the same watch.
func (s *Server) arm(c *conn, kind watchKind, path string) {
	set := c.watches[kind]
	if _, ok := set[path]; ok || c.closed {
		return
	}
	if set == nil {
		set = map[string]struct{}{}
		c.watches[kind] = set
	}
	set[path] = struct{}{}
	if c.view == nil {
		s.watches[kind][path] = append(s.watches[kind][path], c)
	}
}

// disarm removes the watch of c, and says whether there was one.
func (s *Server) disarm(c *conn, kind watchKind, path string) bool {
	if _, ok := c.watches[kind][path]; !ok {
		return false
	}
	delete(c.watches[kind], path)
	if c.view == nil {
		s.unlist(c, kind, path)
	}
	return true
}

func (s *Server) unlist(c *conn, kind watchKind, path string) {
	table := s.watches[kind]
	list := table[path]
	if i := slices.Index(list, c); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(table, path)
	} else {
		table[path] = list
	}
}

// unlistAll takes the watches of c out of the tables, so that nothing that is
// committed from now on fires them.
func (s *Server) unlistAll(c *conn) {
	for kind := range c.watches {
		for path := range c.watches[kind] {
			s.unlist(c, watchKind(kind), path)
		}
	}
}

// dropWatches is what happens to the watches of a connection that ends.
func (s *Server) dropWatches(c *conn) {
	if c.view == nil {
		s.unlistAll(c)
	}
	c.watches = [2]map[string]struct{}{}
}

// fire sends the events of a committed transaction, in its order.
func (s *Server) fire(t *txn) {
	for i := range t.events {
		e := &t.events[i]
		switch e.kind {
		case eventDataChanged:
			s.trigger(dataWatch, e.path, eventDataChanged, t.zxid, e.acl, nil)
		case eventCreated:
			s.trigger(dataWatch, e.path, eventCreated, t.zxid, e.acl, nil)
			s.triggerParent(e, t.zxid)
		case eventDeleted:
			told := s.trigger(dataWatch, e.path, eventDeleted, t.zxid, e.acl, nil)
			s.trigger(childWatch, e.path, eventDeleted, t.zxid, e.acl, told)
			s.triggerParent(e, t.zxid)
		}
	}
}

func (s *Server) triggerParent(e *change, zxid int64) {
	parent := e.parent
	if parent == "" {
		parent = "/"
	}
	s.trigger(childWatch, parent, eventChildrenChanged, zxid, e.parentACL, nil)
}

// trigger uses up the watches of path. Those in told have had the event already.
func (s *Server) trigger(kind watchKind, path string, ev eventType, zxid int64, acl []ACL, told []*conn) []*conn {
	list, ok := s.watches[kind][path]
	if !ok {
		return nil
	}
	delete(s.watches[kind], path)
	for _, c := range list {
		delete(c.watches[kind], path)
		if !slices.Contains(told, c) && allowed(acl, permRead, c.ids) {
			s.notify(c, ev, path, zxid)
		}
	}
	return list
}

// rearm does what setWatches asks for one path: it fires at once if the watch
// would have fired since rel, and arms it if not.
func (s *Server) rearm(c *conn, t *tree, want rearmKind, path string, rel int64) {
	n := t.nodes[path]
	switch {
	case want == rearmExist && n != nil:
		s.notify(c, eventCreated, path, noZxid)
	case want == rearmExist:
		s.arm(c, dataWatch, path)
	case n == nil:
		s.notify(c, eventDeleted, path, noZxid)
	case want == rearmData && n.mzxid > rel:
		s.notify(c, eventDataChanged, path, noZxid)
	case want == rearmData:
		s.arm(c, dataWatch, path)
	case n.pzxid > rel:
		s.notify(c, eventChildrenChanged, path, noZxid)
	default:
		s.arm(c, childWatch, path)
	}
}

type rearmKind int

const (
	rearmData rearmKind = iota
	rearmExist
	rearmChild
)

// notify queues an event for c. Nothing here waits for a reader.
func (s *Server) notify(c *conn, ev eventType, path string, zxid int64) {
	b := appendHeader(s.scratch[:0], watchXid, zxid, codeOK)
	b = appendInt32(b, int32(ev))
	b = appendInt32(b, stateSynced)
	b = appendString(b, path)
	s.scratch = endFrame(b, 0)
	c.out.push(s.scratch, s.watchHits(c, path), true)
}

// watchPaths lists in a defined order.
func watchPaths(set map[string]struct{}) []string { return slices.Sorted(maps.Keys(set)) }
