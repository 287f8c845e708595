package session_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// DiscardOwn deletes the session's own znode, over lost connections, and never a znode of the same name that another
// session created.
func TestDiscardOwn(t *testing.T) {
	ephemeral := func(t *testing.T, s *session.Session, data string) {
		t.Helper()
		if _, err := s.Create(t.Context(), "/x", []byte(data), zk.FlagEphemeral); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what string
		make func(t *testing.T, s, other *session.Session)
		left bool
	}{
		{"ours", func(t *testing.T, s, _ *session.Session) { ephemeral(t, s, "own") }, false},
		{"of another session", func(t *testing.T, _, other *session.Session) { ephemeral(t, other, "own") }, true},
		{"with other data", func(t *testing.T, s, _ *session.Session) { ephemeral(t, s, "of others") }, true},
		{"no ephemeral", func(t *testing.T, s, _ *session.Session) { create(t, s, "/x", 0) }, true},
		{"nothing", func(*testing.T, *session.Session, *session.Session) {}, false},
	} {
		for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpDelete} {
			for _, at := range []zkserver.Moment{zkserver.BeforeCommit, zkserver.BeforeReply} {
				t.Run(c.what, func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						s, other := current(t, connect(t, srv, three)), current(t, connect(t, srv, three))
						c.make(t, s, other)
						srv.Inject(zkserver.Fault{Op: op, Times: 3, At: at, Do: zkserver.Disconnect})
						<-s.DiscardOwn("/x", []byte("own"))
						mustExist(t, srv, "/x", c.left)
					})
				})
			}
		}
	}
}

// DiscardOwn with nil data removes an ephemeral of this session regardless of its data, and does not touch the
// ephemeral of another session. To see this test fail, make chore.owns compare nil like other data.
func TestDiscardOwnOfAnyData(t *testing.T) {
	for _, ours := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s, other := current(t, connect(t, srv, three)), current(t, connect(t, srv, three))
			owner := other
			if ours {
				owner = s
			}
			if _, err := owner.Create(t.Context(), "/x", []byte("changed by an operator"), zk.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
			<-s.DiscardOwn("/x", nil)
			mustExist(t, srv, "/x", !ours)
		})
	}
}

// DiscardOwn does not touch a znode that another client has changed or replaced between the look and the removal, and
// removes a znode of ours that has another version but the same data.
func TestDiscardOwnOfAZnodeThatChangesAfterTheLook(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, srv *zksynctest.Server, other *session.Session)
		left   bool
	}{
		"other data": {func(t *testing.T, srv *zksynctest.Server, _ *session.Session) { srv.Set("/x", []byte("other")) }, true},
		"other owner": {func(t *testing.T, srv *zksynctest.Server, other *session.Session) {
			srv.Delete("/x")
			create(t, other, "/x", zk.FlagEphemeral)
		}, true},
		"same data": {func(t *testing.T, srv *zksynctest.Server, _ *session.Session) { srv.Set("/x", []byte("own")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s, other := current(t, connect(t, srv, three)), current(t, connect(t, srv, three))
				create(t, s, "/x", zk.FlagEphemeral)
				if _, err := s.Set(t.Context(), "/x", []byte("own"), 0); err != nil {
					t.Fatal(err)
				}
				srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Do: zkserver.Call(func() { c.change(t, srv, other) })})
				<-s.DiscardOwn("/x", []byte("own"))
				mustExist(t, srv, "/x", c.left)
			})
		})
	}
}

// DiscardOwn does not touch a znode that another session created between its attempts.
func TestDiscardOwnLeavesTheNextOne(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s, other := current(t, connect(t, srv, three)), current(t, connect(t, srv, three))
		create(t, s, "/x", zk.FlagEphemeral)
		srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, At: zkserver.BeforeReply, Do: zkserver.Call(func() {
			create(t, other, "/x", zk.FlagEphemeral)
		})})
		srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
		data, _, err := s.Get(t.Context(), "/x")
		if err != nil {
			t.Fatal(err)
		}
		<-s.DiscardOwn("/x", data)
		mustExist(t, srv, "/x", true)
	})
}
