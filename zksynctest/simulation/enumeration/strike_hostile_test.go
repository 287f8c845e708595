package enumeration_test

import (
	"slices"

	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
	"github.com/go-zksync/toolkit/zksynctest/simulation/surroundings"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// isNew35 reports whether ZooKeeper 3.4 does not know an operation.
func isNew35(op zkserver.OpCode) bool { return slices.Contains(surroundings.New35, op) }

// newer reports whether a frame is a request that ZooKeeper 3.4 does not know.
func newer(f network.Frame) bool { return request(f, isNew35) }

// touch writes the data of each znode of the primitives again.
func (s *stage) touch(network.Frame) {
	n := 0
	for path := range s.eachZnode {
		if data, there := s.server.Get(path); there && s.server.Set(path, data) == nil {
			n++
		}
	}
	if n == 0 {
		s.void("no znode, or no leader")
		return
	}
	s.say("another client writes %d znodes again", n)
}

// intrude creates znodes of another program for T/2, in each znode of the primitives that has children.
func (s *stage) intrude(network.Frame) {
	var created []string
	for path := range s.eachZnode {
		if names, _ := s.server.Children(path); len(names) == 0 {
			continue // a child would keep the owner of the znode from deleting it
		}
		for _, name := range foreign {
			if child := path + "/" + name; s.server.Create(child, []byte("foreign")) == nil {
				created = append(created, child)
			}
		}
	}
	if len(created) == 0 {
		s.void("no directory, or no leader")
		return
	}
	s.say("another client creates %d znodes", len(created))
	s.heal(timeout/2, func() {
		for _, path := range created {
			s.operator(func() error { return s.deleteIfThere(path) })
		}
	})
}
