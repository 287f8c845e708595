package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// unreadable lets everybody write to the znode of an Ephemeral, and nobody read it.
var unreadable = session.WithEphemeralACL(zk.WorldACL(zk.PermWrite)...)

// An Ephemeral that may not be read is Present after its create has lost its answer, keeps its data up to date, and is
// removed by Close (ownsUnreadable).
func TestUnreadableEphemeralAfterALostAnswer(t *testing.T) {
	for _, compat := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", At: zkserver.BeforeReply, Do: zkserver.Disconnect})
			e := keepEphemeral(t, m, "/a", "x", unreadable)
			status(t, e, session.Present)
			for _, data := range []string{"y", "z"} {
				if err := e.Set(t.Context(), []byte(data)); err != nil {
					t.Error(err)
				}
				if got, _ := srv.Get("/a"); string(got) != data {
					t.Errorf("data %q, want %q", got, data)
				}
			}
			time.Sleep(time.Hour)
			if err := e.Err(); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			mustExist(t, srv, "/a", false)
		}, zksynctest.WithConfig(zkserver.Config{Compat38: compat}))
	}
}

// A call of Ephemeral that is cancelled before the answer to its create
// leaves no znode, although the znode may not be read, and although another client has written to it (removeOwn).
func TestCancelledUnreadableEphemeral(t *testing.T) {
	for _, written := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			ctx, cancel := context.WithCancel(t.Context())
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", At: zkserver.AfterCommit, Do: zkserver.Call(func() {
				if written {
					srv.Set("/a", []byte("by another client"))
				}
				cancel()
			})})
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", At: zkserver.BeforeReply, Do: zkserver.Disconnect})
			_, err := m.Ephemeral(ctx, "/a", []byte("x"), unreadable)
			mustBe(t, err, context.Canceled)
			time.Sleep(time.Minute)
			mustExist(t, srv, "/a", false)
		})
	}
}

// An Ephemeral touches no znode of another client that may not be read, neither by a Set nor at Close, and reports the
// Conflict (owned.look, removeOwn).
func TestUnreadableEphemeralIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m, other := srv.Connect(t), current(t, srv.Connect(t))
		e := keepEphemeral(t, m, "/a", "x", unreadable)
		status(t, e, session.Present)
		srv.Delete("/a")
		if _, err := other.Create(t.Context(), "/a", []byte("0"), zk.FlagEphemeral, zk.WorldACL(zk.PermWrite)...); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Set(t.Context(), "/a", []byte("theirs"), 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		mustBe(t, e.Set(ctx, []byte("ours")), context.DeadlineExceeded, session.ErrConflict)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if data, err := srv.Get("/a"); string(data) != "theirs" {
			t.Errorf("the znode of the other client: %q, %v", data, err)
		}
	})
}

// A session knows its own ephemeral among znodes that may not be read, on every server.
func TestUnreadableEphemeralsOfOthers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		dir := servers.Path(t)
		m, other := srv.Connect(t), current(t, srv.Connect(t))
		create(t, other, dir, 0)
		// Its path begins with the path of the other client's znode.
		longer := keepEphemeral(t, m, dir+"/aa", "x", unreadable)
		status(t, longer, session.Present)
		if _, err := other.Create(t.Context(), dir+"/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermWrite)...); err != nil {
			t.Fatal(err)
		}
		e := keepEphemeral(t, m, dir+"/a", "x", unreadable)
		status(t, e, session.Conflict)
		for _, closed := range []*session.Ephemeral{longer, e} {
			if err := closed.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := other.Delete(t.Context(), dir+"/a", 0); err != nil {
			t.Errorf("the znode of the other client: %v", err)
		}
	})
}

// The log tells of an Ephemeral that waits behind a znode that it may not read, on servers that tell its owner and on servers
// that do not.
func TestWaitBehindAnUnreadableZnodeIsLogged(t *testing.T) {
	for _, compat := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			other := current(t, srv.Connect(t))
			if _, err := other.Create(t.Context(), "/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermWrite)...); err != nil {
				t.Fatal(err)
			}
			opt, logs := observed()
			e := keepEphemeral(t, srv.Connect(t, opt), "/a", "x")
			start := time.Now()
			time.Sleep(time.Minute)
			mustBe(t, e.Err(), session.ErrConflict)
			if lines, _ := logged(logs, "a call waited", start); len(lines) == 0 || len(lines) > 10 {
				t.Errorf("%d lines of the log in a minute, want one to ten: %v", len(lines), logs.All())
			}
		}, zksynctest.WithConfig(zkserver.Config{Compat38: compat}))
	}
}

// A znode that was deleted while its ACL was closed, the znode of an Ephemeral or the one in its way, is missed until the
// next reconnect at the latest. The server of 3.9 tells no client before.
func TestDeletionBehindAClosedACL(t *testing.T) {
	for _, conflict := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			if conflict {
				srv.Create("/a", nil)
			}
			e := keepEphemeral(t, m, "/a", "ours")
			time.Sleep(time.Second)
			srv.SetACL("/a", []zkserver.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "joe:x"}})
			srv.Delete("/a")
			time.Sleep(time.Minute)
			srv.Disconnect(current(t, m).ID())
			time.Sleep(10 * time.Second)
			if err := e.Err(); err != nil {
				t.Errorf("conflict %v: %v", conflict, err)
			}
			mustOwn(t, m, "/a", "ours")
		})
	}
}
