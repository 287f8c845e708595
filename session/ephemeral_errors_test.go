package session_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An Ephemeral with a sequence number leaves no znode when its creation fails, or when a server has an internal error.
func TestSequentialEphemeralAfterAnInternalErrorLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		srv.Create("/d", nil)
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/d/*", Do: zkserver.Error(-1)})
		_, err := m.Ephemeral(t.Context(), "/d/member-", []byte("x"), session.WithSequence())
		if err == nil {
			return
		}
		time.Sleep(time.Hour)
		if names := children(srv, "/d"); len(names) != 0 {
			t.Errorf("Ephemeral failed with %v, and an hour later there are %v", err, names)
		}
	})
}

// An Ephemeral with a sequence number has one znode, also after an internal error of a server (Ephemeral.watchOwn).
func TestSequentialEphemeralHasOneZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		srv.Create("/d", nil)
		e := keepEphemeral(t, m, "/d/member-", "x", session.WithSequence())
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/d/*", Do: zkserver.Error(-1)})
		if err := e.Set(t.Context(), []byte("y")); err != nil { // the change makes the Ephemeral look
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if names := children(srv, "/d"); len(names) != 1 {
			t.Errorf("one Ephemeral has %v", names)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if names := children(srv, "/d"); len(names) != 0 {
			t.Errorf("left after Close: %v", names)
		}
	})
}

// An Ephemeral stays Present, and replaces no data of other clients, when a server has an internal error.
func TestEphemeralSurvivesAnInternalError(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "mine")
		status(t, e, session.Present)
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/a", Do: zkserver.Error(-1)})
		srv.Set("/a", []byte("by an operator"))
		time.Sleep(time.Hour)
		if data, _ := srv.Get("/a"); string(data) != "by an operator" {
			t.Errorf("the data of the other client was replaced by %q", data)
		}
		select {
		case st := <-e.Status():
			t.Errorf("a status was told (now %v), although the znode has existed all the time", st)
		default:
		}
	})
}

// A cancelled call of Ephemeral leaves no znode, although a deposed leader does not show it (removeOwn: SyncQuorum).
func TestCancelledEphemeralAtADeposedLeader(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		old, server := e.Leader(), e.Followers()[0]
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return e.Endpoint(server).Dial(ctx, network, address)
		}
		m, err := session.Connect(t.Context(), "10.0.0.1", session.WithDialer(dial), session.WithTimeout(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := current(t, m)
		e.Depose()
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		e.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.AfterCommit, Do: zkserver.Call(func() {
			server = old
			cancel()
		})})
		e.Inject(zkserver.Fault{Op: zkserver.OpCreate, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
		_, err = m.Ephemeral(ctx, "/e", nil)
		mustBe(t, err, context.Canceled)
		time.Sleep(time.Second)
		server = e.WaitLeader(old)
		e.HealAll()
		time.Sleep(10 * time.Minute)
		if ok, _, err := s.Exists(t.Context(), "/e"); ok || err != nil {
			t.Errorf("the znode of the cancelled call exists ten minutes later: %v, %v", ok, err)
		}
	})
}

// The znode of an Ephemeral has the same data in this session and the next, also if a Set was answered with an internal error.
func TestEphemeralKnowsItsDataAfterAnInternalError(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "old")
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetData, At: zkserver.AfterCommit, Do: zkserver.Error(-1)})
		err := e.Set(t.Context(), []byte("new"))
		time.Sleep(time.Hour)
		now, _ := srv.Get("/a")
		srv.ExpireSession(current(t, m).ID())
		time.Sleep(time.Hour)
		if next, _ := srv.Get("/a"); string(now) != string(next) {
			t.Errorf("Set: %v; the znode holds %q in this session and %q in the next", err, now, next)
		}
	})
}

// Close of an Ephemeral with a sequence number returns when its znode is gone, also if it was just being created again
// after a lost session, and reports the refusal of the removal.
func TestCloseOfASequentialEphemeralDuringItsCreation(t *testing.T) {
	for _, at := range []zkserver.Moment{zkserver.BeforeReply, zkserver.BeforeCommit} {
		for _, refused := range []bool{false, true} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				mustBe(t, srv.Create("/d", nil), nil)
				e := keepEphemeral(t, m, "/d/member-", "x", session.WithSequence())
				srv.Inject(zkserver.Fault{Path: "/d/*", At: at, Do: zkserver.Delay(time.Second)})
				if refused {
					srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Path: "/d/*", Times: -1, Do: zkserver.Error(zkserver.ErrNoAuth)})
				}
				mustBe(t, srv.ExpireSession(current(t, m).ID()), nil)
				current(t, m)
				time.Sleep(time.Second / 2)
				err := e.Close()
				if names := children(srv, "/d"); refused != (len(names) > 0) || refused != (session.ClassOf(err) == session.ClassNoAuth) {
					t.Errorf("%v, refused %v: left after Close, which has returned %v: %v", at, refused, err, names)
				}
			})
		}
	}
}

// Close of an Ephemeral with a sequence number also waits for the znode of a create that the server has answered with an
// internal error, and reports the refusal to remove that znode.
func TestCloseOfASequentialEphemeralAfterAnInternalError(t *testing.T) {
	for _, refused := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			mustBe(t, srv.Create("/d", nil), nil)
			e := keepEphemeral(t, m, "/d/member-", "x", session.WithSequence())
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/d/*", At: zkserver.AfterCommit, Do: zkserver.Delay(time.Second)})
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/d/*", At: zkserver.AfterCommit, Do: zkserver.Error(zkserver.ErrSystem)})
			answer := zkserver.Delay(time.Second)
			if refused {
				answer = zkserver.Error(zkserver.ErrNoAuth)
			}
			mustBe(t, srv.Delete(e.Path()), nil)
			srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Path: "/d/*", Do: answer})
			time.Sleep(time.Second / 2) // the Ephemeral is created again
			err := e.Close()
			if names := children(srv, "/d"); refused != (len(names) > 0) || refused != (session.ClassOf(err) == session.ClassNoAuth) {
				t.Errorf("refused %v: left after Close, which has returned %v: %v", refused, err, names)
			}
		})
	}
}
