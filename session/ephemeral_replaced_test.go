package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// An Ephemeral whose znode another part of the program replaces in the same session is in Conflict with the new znode, and
// leaves it untouched, also at Close (attempt.owns).
func TestEphemeralReplacedInItsSession(t *testing.T) {
	for _, at := range []string{"seen", "at Close"} {
		t.Run(at, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				e := keepEphemeral(t, m, "/a", "x")
				status(t, e, session.Present)
				ops := []any{
					&zk.SetDataRequest{Path: "/a", Data: []byte("bye"), Version: -1},
					&zk.DeleteRequest{Path: "/a", Version: -1},
					&zk.CreateRequest{Path: "/a", Data: []byte("theirs"), Flags: zk.FlagEphemeral},
				}
				// Without the write, the event is the deletion, which needs no look at the new znode.
				if at != "seen" {
					ops = ops[1:]
				}
				if _, err := s.Multi(t.Context(), ops...); err != nil {
					t.Fatal(err)
				}
				if at == "seen" {
					synctest.Wait()
					status(t, e, session.Conflict)
					mustBe(t, e.Err(), session.ErrConflict)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if data, _ := srv.Get("/a"); string(data) != "theirs" {
					t.Errorf("the other znode has %q after Close, want %q", data, "theirs")
				}
			})
		})
	}
}
