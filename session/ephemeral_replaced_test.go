package session_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// A Conflict with a znode of many children breaks no connection, however small WithMaxAnswer is. To see this test fail,
// list the children of the obstacle.
func TestConflictWithALargeDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for i := range 101 {
			path := "/a"
			if i > 0 {
				path += fmt.Sprintf("/child-%020d", i)
			}
			if err := srv.Create(path, nil); err != nil {
				t.Fatal(err)
			}
		}
		m := srv.Connect(t, session.WithMaxAnswer(1024))
		e := keepEphemeral(t, m, "/a", "x")
		mustBe(t, e.Err(), session.ErrConflict)
		for i := range 5 {
			time.Sleep(time.Minute)
			if err := srv.Set("/a", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if n := m.Stats().Connections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A Conflict with a znode of large data and few children breaks no connection, either (owned.claim: childBytes).
func TestConflictWithLargeData(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		if err := srv.Create("/a", bytes.Repeat([]byte("x"), 500<<10)); err != nil {
			t.Fatal(err)
		}
		if err := srv.Create("/a/child", nil); err != nil {
			t.Fatal(err)
		}
		m := srv.Connect(t, session.WithMaxAnswer(64<<10))
		e := keepEphemeral(t, m, "/a", "x")
		mustBe(t, e.Err(), session.ErrConflict)
		for i := range 5 {
			time.Sleep(time.Minute)
			if err := srv.Set("/a", bytes.Repeat([]byte{byte(i)}, 500<<10)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if n := m.Stats().Connections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}
