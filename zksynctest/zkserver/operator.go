package zkserver

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// operate runs one write for an operator of the server, who bypasses all ACLs.
func (s *Server) operate(what, path string, write func(*tree.Txn) Code) error {
	s.mu.Lock()
	if s.closed || s.en.current == nil {
		s.mu.Unlock()
		return cmp.Or(s.journal.Failure(), ErrNotServing)
	}
	t := s.data.Begin(tree.SuperUser, time.Now().UnixMilli(), false)
	code := write(t)
	s.fire(t)
	s.mu.Unlock()
	if code != jute.OK {
		return fmt.Errorf("zkserver: %s %s: %w", what, path, code)
	}
	return s.persist()
}

// Create creates a persistent znode with an open ACL. Like every operator call, Create is a
// transaction that takes a zxid and fires watches.
func (s *Server) Create(path string, data []byte) error {
	r := jute.Request{Op: OpCreate, Path: path, Data: data, ACL: jute.OpenACL, TTL: -1}
	return s.operate("Create", path, func(t *tree.Txn) Code {
		_, _, code := t.Create(&r, 0)
		return code
	})
}

// Set sets the data of a znode.
func (s *Server) Set(path string, data []byte) error {
	return s.operate("Set", path, func(t *tree.Txn) Code {
		_, code := t.SetData(path, data, -1)
		return code
	})
}

// Delete deletes a znode without children.
func (s *Server) Delete(path string) error {
	return s.operate("Delete", path, func(t *tree.Txn) Code { return t.Delete(path, -1) })
}

// SetACL sets the ACL of a znode. Clients that have opened a session keep it, and the server decides
// about each of their later requests by the new list.
func (s *Server) SetACL(path string, list []ACL) error {
	return s.operate("SetACL", path, func(t *tree.Txn) Code {
		_, code := t.SetACL(path, list, -1)
		return code
	})
}

// ACL returns the ACL of a znode, and whether the znode exists.
func (s *Server) ACL(path string) ([]ACL, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.data.Tree.Node(path)
	if n == nil {
		return nil, false
	}
	return slices.Clone(n.ACL()), true
}

// Children returns the names of the children of a znode, in unspecified order, and whether the
// znode exists.
func (s *Server) Children(path string) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.data.Tree.Node(path)
	if n == nil {
		return nil, false
	}
	names := make([]string, len(n.Children()))
	for i, c := range n.Children() {
		names[i] = c.Name()
	}
	return names, true
}

// Get returns the data of a znode, and whether the znode exists.
func (s *Server) Get(path string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.data.Tree.Node(path)
	if n == nil {
		return nil, false
	}
	return bytes.Clone(n.Data), true
}
