package zkserver

import (
	"math"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// ownerContainer marks a container in the field that holds the session of an
// ephemeral. A TTL node has ownerTTL in the highest byte and its ttl below.
const (
	ownerContainer int64 = math.MinInt64
	ownerTTL       int64 = -1 << 56 // 0xff << 56
	maxTTL               = 0xffffffffff
)

// node is a znode. Its data and its ACL are never written to once they are here,
// so that a snapshot of the tree can share them. There may be a million of these:
// it takes 128 bytes, and what most znodes lack is behind a pointer.
type node struct {
	path   string // shared with the key of the tree
	parent *node
	kids   *[]*node // nil until there is one
	data   []byte
	rights *[]ACL // shared by those that have the same

	czxid, mzxid, pzxid        int64
	ctime, mtime               int64
	owner                      int64
	version, creates, aversion int32 // creates is the cversion that is stored, not the one clients see
	pos                        int32 // among the children of parent
}

// name is the last part of the path.
func (n *node) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }

// children come in no order that anybody may rely on.
func (n *node) children() []*node {
	if n.kids == nil {
		return nil
	}
	return *n.kids
}

func (n *node) acl() []ACL {
	if n.rights == nil {
		return nil
	}
	return *n.rights
}

// isEphemeral is true for what dies with a session, and for that only.
func (n *node) isEphemeral() bool {
	return n.owner != 0 && n.owner != ownerContainer && n.owner&ownerTTL != ownerTTL
}

// isReapable is true for containers and TTL nodes.
func (n *node) isReapable() bool { return n.owner != 0 && !n.isEphemeral() }

func (n *node) addChild(c *node) {
	if n.kids == nil {
		n.kids = new([]*node)
	}
	c.parent, c.pos = n, int32(len(*n.kids))
	*n.kids = append(*n.kids, c)
}

// removeChild moves the last child into the gap: the order of children is not
// defined, and nobody should come to rely on one.
func (n *node) removeChild(c *node) {
	list := *n.kids
	last := len(list) - 1
	moved := list[last]
	list[c.pos], moved.pos = moved, c.pos
	list[last] = nil
	switch {
	case last == 0:
		n.kids = nil
	case last < cap(list)/4: // a line that was long once is not for ever
		*n.kids = append(make([]*node, 0, cap(list)/2), list[:last]...)
	default:
		*n.kids = list[:last]
	}
}

// appendStat writes the Stat record. The cversion that clients see counts creates
// and deletes; what is stored counts creates, and the children give the rest.
func (n *node) appendStat(b []byte) []byte {
	b = jute.AppendInt64(b, n.czxid)
	b = jute.AppendInt64(b, n.mzxid)
	b = jute.AppendInt64(b, n.ctime)
	b = jute.AppendInt64(b, n.mtime)
	b = jute.AppendInt32(b, n.version)
	b = jute.AppendInt32(b, n.visibleCversion())
	b = jute.AppendInt32(b, n.aversion)
	owner := n.owner
	if !n.isEphemeral() {
		owner = 0
	}
	b = jute.AppendInt64(b, owner)
	b = jute.AppendInt32(b, int32(len(n.data)))
	b = jute.AppendInt32(b, int32(len(n.children())))
	return jute.AppendInt64(b, n.pzxid)
}

func (n *node) visibleCversion() int32 { return n.creates*2 - int32(len(n.children())) }

func (n *node) appendChildren(b []byte) []byte {
	b = jute.AppendInt32(b, int32(len(n.children())))
	skip := len(n.path) + 1 // what their paths begin with
	if n.path == "/" {
		skip = 1
	}
	for _, c := range n.children() {
		b = jute.AppendString(b, c.path[skip:])
	}
	return b
}

// descendants counts all that is below n.
func (n *node) descendants() int {
	number := len(n.children())
	for _, c := range n.children() {
		number += c.descendants()
	}
	return number
}
