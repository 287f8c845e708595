package tree

import "github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"

type rearmKind int

// The lists of setWatches, in their order.
const (
	rearmData rearmKind = iota
	rearmExist
	rearmChild
	rearmPersistent
	rearmRecursive
)

// Rearm leaves the watches of a setWatches for a client that reconnects. A one-shot watch
// that missed a change of t fires at once. The paths are not checked.
func (w *Watches) Rearm(c *Client, t *Tree, r *jute.Request) {
	for kind, paths := range r.Rearm {
		for _, path := range paths {
			switch kind := rearmKind(kind); kind {
			case rearmPersistent:
				w.armMode(c, path, persistent)
			case rearmRecursive:
				w.armMode(c, path, recursive)
			default:
				w.rearmOnce(c, t.nodes[path], kind, path, r.RelZxid)
			}
		}
	}
}

// rearmOnce leaves a one-shot watch, or fires the watch if it would have fired since rel.
func (w *Watches) rearmOnce(c *Client, n *Node, want rearmKind, path string, rel int64) {
	fire := func(ev jute.EventType) { c.Events.Notify(ev, path, jute.NoZxid) }
	switch {
	case want == rearmExist && n != nil:
		fire(jute.EventCreated)
	case want == rearmExist:
		w.Arm(c, DataWatch, path, OneShot)
	case n == nil:
		fire(jute.EventDeleted)
	case want == rearmData && n.mzxid > rel:
		fire(jute.EventDataChanged)
	case want == rearmData:
		w.Arm(c, DataWatch, path, OneShot)
	case n.pzxid > rel:
		fire(jute.EventChildrenChanged)
	default:
		w.Arm(c, ChildWatch, path, OneShot)
	}
}
