package zkserver

import "github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"

// setWatches arms the watches of a client that comes back, and fires those that
// missed something; persistent ones it only arms. Paths are taken as they are.
func (s *Server) setWatches(c *conn, r *jute.Request) {
	t := s.treeOf(c)
	for kind, paths := range r.Rearm {
		for _, path := range paths {
			switch kind := rearmKind(kind); kind {
			case rearmPersistent:
				s.armMode(c, path, persistent)
			case rearmRecursive:
				s.armMode(c, path, recursive)
			default:
				s.rearm(c, t, kind, path, r.RelZxid)
			}
		}
	}
}

type rearmKind int

// The lists of setWatches, in their order.
const (
	rearmData rearmKind = iota
	rearmExist
	rearmChild
	rearmPersistent
	rearmRecursive
)

// rearm does what setWatches asks for one path: it fires at once if the watch
// would have fired since rel, and arms it if not.
func (s *Server) rearm(c *conn, t *tree, want rearmKind, path string, rel int64) {
	n := t.nodes[path]
	switch {
	case want == rearmExist && n != nil:
		s.notify(c, EventCreated, path, jute.NoZxid)
	case want == rearmExist:
		s.arm(c, dataWatch, path, oneShot)
	case n == nil:
		s.notify(c, EventDeleted, path, jute.NoZxid)
	case want == rearmData && n.mzxid > rel:
		s.notify(c, EventDataChanged, path, jute.NoZxid)
	case want == rearmData:
		s.arm(c, dataWatch, path, oneShot)
	case n.pzxid > rel:
		s.notify(c, EventChildrenChanged, path, jute.NoZxid)
	default:
		s.arm(c, childWatch, path, oneShot)
	}
}
