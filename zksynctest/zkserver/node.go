package zkserver

import "math"

// ownerContainer marks a container in the field that holds the session of an
// ephemeral. A TTL node has ownerTTL in the highest byte and its ttl below.
const (
	ownerContainer int64 = math.MinInt64
	ownerTTL       int64 = -1 << 56 // 0xff << 56
	maxTTL               = 0xffffffffff
)

// node is a znode. Its data and acl are never written to once they are here, so
// that a snapshot of the tree can share them.
type node struct {
	name     string
	parent   *node
	pos      int // among the children of parent
	children []*node

	data []byte
	acl  []ACL

	czxid, mzxid, pzxid        int64
	ctime, mtime               int64
	version, creates, aversion int32 // creates is the cversion that is stored, not the one clients see
	owner                      int64
}

// isEphemeral is true for what dies with a session, and for that only.
func (n *node) isEphemeral() bool {
	return n.owner != 0 && n.owner != ownerContainer && n.owner&ownerTTL != ownerTTL
}

// isReapable is true for containers and TTL nodes.
func (n *node) isReapable() bool { return n.owner != 0 && !n.isEphemeral() }

func (n *node) addChild(c *node) {
	c.parent, c.pos = n, len(n.children)
	n.children = append(n.children, c)
}

// removeChild moves the last child into the gap: the order of children is not
// defined, and nobody should come to rely on one.
func (n *node) removeChild(c *node) {
	last := len(n.children) - 1
	moved := n.children[last]
	n.children[c.pos], moved.pos = moved, c.pos
	n.children[last] = nil
	n.children = n.children[:last]
}

// appendStat writes the Stat record. The cversion that clients see counts creates
// and deletes; what is stored counts creates, and the children give the rest.
func (n *node) appendStat(b []byte) []byte {
	b = appendInt64(b, n.czxid)
	b = appendInt64(b, n.mzxid)
	b = appendInt64(b, n.ctime)
	b = appendInt64(b, n.mtime)
	b = appendInt32(b, n.version)
	b = appendInt32(b, n.visibleCversion())
	b = appendInt32(b, n.aversion)
	owner := n.owner
	if !n.isEphemeral() {
		owner = 0
	}
	b = appendInt64(b, owner)
	b = appendInt32(b, int32(len(n.data)))
	b = appendInt32(b, int32(len(n.children)))
	return appendInt64(b, n.pzxid)
}

func (n *node) visibleCversion() int32 { return n.creates*2 - int32(len(n.children)) }

func (n *node) appendChildren(b []byte) []byte {
	b = appendInt32(b, int32(len(n.children)))
	for _, c := range n.children {
		b = appendString(b, c.name)
	}
	return b
}

// descendants counts all that is below n.
func (n *node) descendants() int {
	number := len(n.children)
	for _, c := range n.children {
		number += c.descendants()
	}
	return number
}
