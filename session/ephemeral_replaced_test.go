package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An Ephemeral whose znode another part of the program replaces in the same session is in Conflict with the new znode, and
// leaves it untouched, also at Close (attempt.mayOwn).
func TestEphemeralReplacedInItsSession(t *testing.T) {
	for _, at := range []string{"seen", "at Close", "unreadable"} {
		t.Run(at, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				var opts []session.EphemeralOption
				if at == "unreadable" {
					opts = append(opts, unreadable)
				}
				e := keepEphemeral(t, m, "/a", "x", opts...)
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

// An Ephemeral whose create was lost and never carried out is in Conflict with an ephemeral that another part of the
// program has created in the same session since then, and leaves it untouched, also at Close.
func TestEphemeralBesideAnotherThatFollowsALostCreate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Nth: 1, Times: 12, Do: zkserver.Throttle})
		go func() {
			time.Sleep(100 * time.Millisecond)
			if _, err := s.Multi(t.Context(), &zk.CreateRequest{Path: "/a", Data: []byte("theirs"), Flags: zk.FlagEphemeral}); err != nil {
				t.Error(err)
			}
		}()
		e := keepEphemeral(t, m, "/a", "x")
		time.Sleep(time.Minute)
		mustBe(t, e.Err(), session.ErrConflict)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if data, _ := srv.Get("/a"); string(data) != "theirs" {
			t.Errorf("the other znode has %q after Close, want %q", data, "theirs")
		}
	})
}

// A Set of an Ephemeral that may not be read leaves alone a znode that another client has created in its place some time
// ago, and waits for the end of the Conflict (owned.write looks first).
func TestSetAfterAnUnnoticedReplacement(t *testing.T) {
	for _, compat := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			e := keepEphemeral(t, m, "/a", "x", unreadable)
			status(t, e, session.Present)
			if err := srv.Delete("/a"); err != nil {
				t.Fatal(err)
			}
			if err := srv.Create("/a", []byte("theirs")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			mustBe(t, e.Set(ctx, []byte("ours")), context.DeadlineExceeded, session.ErrConflict)
			if data, _ := srv.Get("/a"); string(data) != "theirs" {
				t.Errorf("the znode of the other client has %q, want %q", data, "theirs")
			}
		}, zksynctest.WithConfig(zkserver.Config{Compat38: compat}))
	}
}
