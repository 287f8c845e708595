package tree

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

// Node is a znode. Its data and its ACL are never written to once they are here,
// so that a snapshot of the tree can share them. There may be a million of these:
// it takes 128 bytes, and the fields that most znodes lack are behind a pointer.
type Node struct {
	Path   string // shared with the key of the tree
	parent *Node
	kids   *[]*Node // nil until there is one
	Data   []byte
	Rights *[]jute.ACL // shared by the znodes that have the same list

	czxid, mzxid, pzxid        int64
	ctime, mtime               int64
	Owner                      int64
	version, creates, aversion int32 // creates is the cversion that is stored, not the one clients see
	pos                        int32 // among the children of parent
}

// Name is the last part of the path.
func (n *Node) Name() string { return n.Path[strings.LastIndexByte(n.Path, '/')+1:] }

// Children come in no defined order.
func (n *Node) Children() []*Node {
	if n.kids == nil {
		return nil
	}
	return *n.kids
}

func (n *Node) ACL() []jute.ACL {
	if n.Rights == nil {
		return nil
	}
	return *n.Rights
}

// isEphemeral reports whether the znode ends with a session.
func (n *Node) isEphemeral() bool {
	return n.Owner != 0 && n.Owner != ownerContainer && n.Owner&ownerTTL != ownerTTL
}

// isReapable is true for containers and TTL nodes.
func (n *Node) isReapable() bool { return n.Owner != 0 && !n.isEphemeral() }

func (n *Node) addChild(c *Node) {
	if n.kids == nil {
		n.kids = new([]*Node)
	}
	c.parent, c.pos = n, int32(len(*n.kids))
	*n.kids = append(*n.kids, c)
}

// removeChild moves the last child into the gap, because the order of children is not
// defined.
func (n *Node) removeChild(c *Node) {
	list := *n.kids
	last := len(list) - 1
	moved := list[last]
	list[c.pos], moved.pos = moved, c.pos
	list[last] = nil
	switch {
	case last == 0:
		n.kids = nil
	case last < cap(list)/4: // to free the room of a directory that was full once
		*n.kids = append(make([]*Node, 0, cap(list)/2), list[:last]...)
	default:
		*n.kids = list[:last]
	}
}

// AppendStat writes the Stat record. The cversion that clients see counts creates and deletes. The stored field counts creates, and the children give the rest.
func (n *Node) AppendStat(b []byte) []byte {
	b = jute.AppendInt64(b, n.czxid)
	b = jute.AppendInt64(b, n.mzxid)
	b = jute.AppendInt64(b, n.ctime)
	b = jute.AppendInt64(b, n.mtime)
	b = jute.AppendInt32(b, n.version)
	b = jute.AppendInt32(b, n.visibleCversion())
	b = jute.AppendInt32(b, n.aversion)
	owner := n.Owner
	if !n.isEphemeral() {
		owner = 0
	}
	b = jute.AppendInt64(b, owner)
	b = jute.AppendInt32(b, int32(len(n.Data)))
	b = jute.AppendInt32(b, int32(len(n.Children())))
	return jute.AppendInt64(b, n.pzxid)
}

func (n *Node) visibleCversion() int32 { return n.creates*2 - int32(len(n.Children())) }

func (n *Node) AppendChildren(b []byte) []byte {
	b = jute.AppendInt32(b, int32(len(n.Children())))
	skip := len(n.Path) + 1 // the length of the prefix of their paths
	if n.Path == "/" {
		skip = 1
	}
	for _, c := range n.Children() {
		b = jute.AppendString(b, c.Path[skip:])
	}
	return b
}

// Descendants counts the znodes below n.
func (n *Node) Descendants() int {
	number := len(n.Children())
	for _, c := range n.Children() {
		number += c.Descendants()
	}
	return number
}

// SetSequence makes next the number of the next sequential child.
func (n *Node) SetSequence(next int32) { n.creates = next }
