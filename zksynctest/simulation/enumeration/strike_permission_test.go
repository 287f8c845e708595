package enumeration_test

import (
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// withhold withholds a permission on all znodes of the primitives for T/2. Znodes that are created
// meanwhile have it.
func withhold(perm int32) func(*stage, network.Frame) {
	return func(s *stage, _ network.Frame) {
		var changed []string
		for path := range s.eachZnode {
			if s.changePermissions(path, func(perms int32) int32 { return perms &^ perm }) == nil {
				changed = append(changed, path)
			}
		}
		if len(changed) == 0 {
			s.void("no znode, or no leader")
			return
		}
		s.heal(timeout/2, func() {
			for _, path := range changed {
				s.operator(func() error {
					return s.changePermissions(path, func(perms int32) int32 { return perms | perm })
				})
			}
		})
	}
}

// shows reports whether a request of an operation needs READ, on all servers. A refusal of these requests, unlike an ACL, hides
// no event: a client that waits for an event which an ACL hides is not told of the change. Servers before 3.8.4 refuse no exists.
func shows(op zkserver.OpCode) bool {
	return op == zkserver.OpGetData || op == zkserver.OpGetChildren || op == zkserver.OpGetChildren2
}

// changePermissions changes the permissions in each entry of the ACL of a znode, if the znode exists.
func (s *stage) changePermissions(path string, change func(perms int32) int32) error {
	list, there := s.server.ACL(path)
	if !there {
		return nil
	}
	for i := range list {
		list[i].Perms = change(list[i].Perms)
	}
	return s.server.SetACL(path, list)
}

// eachZnode visits the znodes of the primitives, each behind its children.
func (s *stage) eachZnode(yield func(path string) bool) {
	var visit func(path string) bool
	visit = func(path string) bool {
		names, there := s.server.Children(path) // in the order of their creation: their names are random
		for _, name := range names {
			if !visit(path + "/" + name) {
				return false
			}
		}
		return !there || yield(path)
	}
	for _, dir := range []string{"/locks", "/elections", "/groups", "/services", "/gates", "/barriers", "/queues"} {
		if !visit(dir) {
			return
		}
	}
}
