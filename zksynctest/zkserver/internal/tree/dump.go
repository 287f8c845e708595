package tree

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// dumpedData is how many bytes of a znode's data Dump shows.
const dumpedData = 64

// Dump shows the tree for people, but for the znodes of the server itself.
func (t *Tree) Dump() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) {
		if path == "" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
			continue
		}
		n := t.nodes[path]
		fmt.Fprintf(&b, "%s version=%d cversion=%d zxid=%#x", path, n.version, n.visibleCversion(), n.mzxid)
		switch {
		case n.isEphemeral():
			fmt.Fprintf(&b, " session=%#x", n.Owner)
		case n.Owner == ownerContainer:
			b.WriteString(" container")
		case n.Owner != 0:
			fmt.Fprintf(&b, " ttl=%v", time.Duration(n.Owner&maxTTL)*time.Millisecond)
		}
		if len(n.Data) > dumpedData {
			fmt.Fprintf(&b, " %s... (%d bytes)", strconv.Quote(string(n.Data[:dumpedData])), len(n.Data))
		} else if len(n.Data) > 0 {
			b.WriteString(" " + strconv.Quote(string(n.Data)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Describe shows all of the tree, in a form that tests compare.
func (t *Tree) Describe() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(t.nodes)) {
		n := *t.nodes[path]
		names := []string{}
		for _, c := range n.Children() {
			names = append(names, c.Name())
		}
		slices.Sort(names)
		acl := n.ACL()
		n.parent, n.kids, n.pos, n.Rights = nil, nil, 0, nil
		fmt.Fprintf(&b, "%q null=%v %+v %+v %q\n", path, n.Data == nil, n, acl, names)
	}
	fmt.Fprintf(&b, "%v\n%v\n", t.ephemerals, slices.Sorted(maps.Keys(t.reapable)))
	fmt.Fprintf(&b, "%v\n", slices.Sorted(maps.Keys(t.quotas)))
	return b.String()
}
