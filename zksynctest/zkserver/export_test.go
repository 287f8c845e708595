package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Everything is all that outlives a server, in a form that can be compared.
func (s *Server) Everything() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "zxid %#x\n", s.zxid)
	for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
		fmt.Fprintf(&b, "session %#x %v\n", id, s.sessions[id].timeout)
	}
	for _, path := range slices.Sorted(maps.Keys(s.tree.nodes)) {
		n := *s.tree.nodes[path]
		names := []string{}
		for _, c := range n.children() {
			names = append(names, c.name())
		}
		slices.Sort(names)
		acl := n.acl()
		n.parent, n.kids, n.pos, n.rights = nil, nil, 0, nil
		fmt.Fprintf(&b, "%q null=%v %+v %+v %q\n", path, n.data == nil, n, acl, names)
	}
	fmt.Fprintf(&b, "%v\n%v\n", s.tree.ephemerals, slices.Sorted(maps.Keys(s.tree.reapable)))
	fmt.Fprintf(&b, "%v\n", slices.Sorted(maps.Keys(s.tree.quotas)))
	return b.String()
}

// RewriteFloor is how large a data file grows before it is written anew.
const RewriteFloor = rewriteFloor
