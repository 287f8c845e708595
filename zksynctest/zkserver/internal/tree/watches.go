package tree

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// watchKind is one of the two tables of watches: getData and exists arm in the table of
// data, getChildren in the table of children, and addWatch in both.
type watchKind int

const (
	DataWatch watchKind = iota
	ChildWatch
)

// watchMode is the set of ways in which a client watches a path.
type watchMode uint8

const (
	OneShot watchMode = 1 << iota
	persistent
	recursive
	anyMode = OneShot | persistent | recursive
)

// A Client is a connection as the tree knows it: the identities that the connection has
// proved, and its watches.
type Client struct {
	IDs     []Identity
	Events  watchEvents // receives the events of the watches
	watches [2]map[string]watchMode
	told    uint64 // the occasion of the latest event that the client was told of
	ended   bool   // the client gets no more watches
}

// watchEvents receives the events of the watches of a client.
type watchEvents interface {
	// Notify queues an event. It must not wait for the client.
	Notify(ev jute.EventType, path string, zxid int64)
}

// Watching is the number of watches of c.
func (c *Client) Watching() int { return len(c.watches[DataWatch]) + len(c.watches[ChildWatch]) }

// has reports whether c has a watch of one of modes.
func (c *Client) has(kind watchKind, path string, modes watchMode) bool {
	return c.watches[kind][path]&modes != 0
}

// Watches are all watches that clients have left on one server.
type Watches struct {
	compat38 bool
	tables   [2]watchTable
	occasion uint64 // counts the changes that clients are told of
}

func NewWatches(compat38 bool) Watches {
	return Watches{compat38: compat38, tables: [2]watchTable{newWatchTable(), newWatchTable()}}
}

// watchTable has the clients that watch a path. The set of each client has the modes.
type watchTable struct {
	paths     map[string]watchers
	most      int // paths there were at once, as far as it was looked at
	recursive int // how many of the watches are recursive
}

// keptPaths is how many paths an empty table keeps the room for.
const keptPaths = 256

func newWatchTable() watchTable { return watchTable{paths: map[string]watchers{}} }

func (t *watchTable) size() int {
	n := 0
	for _, w := range t.paths {
		n += w.size()
	}
	return n
}

// Arm leaves a watch of c. A second watch of the same mode for the same path is the same
// watch. Before 3.9 there was one mode for a path, the latest.
func (w *Watches) Arm(c *Client, kind watchKind, path string, mode watchMode) {
	if c.ended {
		return
	}
	had := c.watches[kind][path]
	if w.compat38 {
		w.setModes(c, kind, path, mode)
	} else if had&mode == 0 {
		w.setModes(c, kind, path, had|mode)
	}
}

// disarm removes the watches of c that have one of modes, and reports whether there
// were any.
func (w *Watches) disarm(c *Client, kind watchKind, path string, modes watchMode) bool {
	had := c.watches[kind][path]
	if had&modes == 0 {
		return false
	}
	w.setModes(c, kind, path, had&^modes)
	return true
}

// setModes makes modes the ways in which c watches path.
func (w *Watches) setModes(c *Client, kind watchKind, path string, modes watchMode) {
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
	table := &w.tables[kind]
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

func (t *watchTable) list(c *Client, path string) {
	w := t.paths[path]
	w.add(c)
	t.paths[path] = w
}

func (t *watchTable) unlist(c *Client, path string) {
	w := t.paths[path]
	w.remove(c)
	t.keep(path, w)
}

// keep makes w the clients that watch path.
func (t *watchTable) keep(path string, w watchers) {
	if w.size() > 0 {
		t.paths[path] = w
		return
	}
	t.most = max(t.most, len(t.paths))
	delete(t.paths, path)
	if len(t.paths) == 0 && t.most > keptPaths {
		t.paths, t.most = map[string]watchers{}, 0 // a map keeps the room for all it had
	}
}

// Detach takes the watches of c out of the tables, so that nothing fires them from now
// on.
func (w *Watches) Detach(c *Client) {
	for kind := range c.watches {
		table := &w.tables[kind]
		for path, modes := range c.watches[kind] {
			table.countRecursive(modes, 0)
			table.unlist(c, path)
		}
	}
}

// Attach puts the watches of c into the tables, in a defined order.
func (w *Watches) Attach(c *Client) {
	c.told = 0 // it counts the occasions of the tables that c was in before
	for kind := range c.watches {
		table := &w.tables[kind]
		for _, path := range watchPaths(c.watches[kind]) {
			table.countRecursive(0, c.watches[kind][path])
			table.list(c, path)
		}
	}
}

// Drop removes all watches of c, and c gets no more.
func (w *Watches) Drop(c *Client) {
	c.ended = true
	w.Detach(c)
	c.watches = [2]map[string]watchMode{}
}

// Fire sends the events of one change.
func (w *Watches) Fire(e *Change, zxid int64) {
	switch e.kind {
	case jute.EventDataChanged:
		w.trigger(DataWatch, e.path, jute.EventDataChanged, zxid, e.acl)
	case jute.EventCreated:
		w.trigger(DataWatch, e.path, jute.EventCreated, zxid, e.acl)
		w.triggerParent(e, zxid)
	case jute.EventDeleted:
		w.trigger(DataWatch, e.path, jute.EventDeleted, zxid, e.acl)
		// A client that has had the event from one table does not get it from the other.
		w.triggerMore(ChildWatch, e.path, jute.EventDeleted, zxid, e.acl)
		w.triggerParent(e, zxid)
	}
}

func (w *Watches) triggerParent(e *Change, zxid int64) {
	parent := e.parent
	if parent == "" {
		parent = "/"
	}
	w.trigger(ChildWatch, parent, jute.EventChildrenChanged, zxid, e.parentACL)
}

// trigger sends an event to the watches of path in one table, and removes the one-shot
// watches.
func (w *Watches) trigger(kind watchKind, path string, ev jute.EventType, zxid int64, acl []jute.ACL) {
	w.occasion++
	w.triggerMore(kind, path, ev, zxid, acl)
}

// triggerMore continues with the event of the latest trigger.
func (w *Watches) triggerMore(kind watchKind, path string, ev jute.EventType, zxid int64, acl []jute.ACL) {
	table := &w.tables[kind]
	if list, ok := table.paths[path]; ok {
		list.filter(func(c *Client) bool {
			modes := c.watches[kind][path]
			if ev != jute.EventChildrenChanged || modes != recursive {
				w.tell(c, ev, path, zxid, acl)
			}
			if modes &^= OneShot; modes == 0 {
				delete(c.watches[kind], path)
				return false
			}
			c.watches[kind][path] = modes
			return true
		})
		table.keep(path, list)
	}
	if table.recursive == 0 || ev == jute.EventChildrenChanged {
		return
	}
	for above := path; above != "/" && above != ""; {
		if above = above[:max(strings.LastIndexByte(above, '/'), 0)]; above == "" {
			above = "/"
		}
		for c := range table.paths[above].all() {
			if c.watches[kind][above]&recursive != 0 {
				w.tell(c, ev, path, zxid, acl)
			}
		}
	}
}

// tell sends an event to c if c may read the znode and has not had the event yet.
func (w *Watches) tell(c *Client, ev jute.EventType, path string, zxid int64, acl []jute.ACL) {
	if c.told == w.occasion {
		return
	}
	c.told = w.occasion
	if w.compat38 {
		zxid = jute.NoZxid
	}
	if Allowed(acl, jute.PermRead, c.IDs) {
		c.Events.Notify(ev, path, zxid)
	}
}

// watchPaths lists in a defined order.
func watchPaths(set map[string]watchMode) []string { return slices.Sorted(maps.Keys(set)) }

// Size is the number of watches.
func (w *Watches) Size() int { return w.tables[DataWatch].size() + w.tables[ChildWatch].size() }

// DataPaths lists the paths in the table of data, sorted.
func (w *Watches) DataPaths() []string { return slices.Sorted(maps.Keys(w.tables[DataWatch].paths)) }

// DataWatchers lists the clients in the table of data that watch path, in the order in
// which they began to.
func (w *Watches) DataWatchers(path string) []*Client {
	return slices.Collect(w.tables[DataWatch].paths[path].all())
}
