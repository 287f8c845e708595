package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Close of an Ephemeral whose creation is under way returns when the znode is gone, also for a sequential znode
// (removeNamed).
func TestCloseDuringTheCreationOfASequentialEphemeral(t *testing.T) {
	for _, opts := range [][]session.EphemeralOption{nil, {session.WithSequence()}} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			srv.Create("/d", nil)
			e := keepEphemeral(t, m, "/d/a", "x", opts...)
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/d/*", At: zkserver.BeforeReply, Do: zkserver.Delay(2 * time.Second)})
			if err := srv.Delete(e.Path()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if names := children(srv, "/d"); len(names) != 0 {
				t.Errorf("children %v after Close, want none", names)
			}
		})
	}
}

// Close of a sequential Ephemeral whose creation is under way fails if the server refuses the removal (chore.final).
func TestCloseOfASequentialEphemeralThatIsNotRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		if _, err := current(t, m).Create(t.Context(), "/d", nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate)...); err != nil {
			t.Fatal(err)
		}
		e := keepEphemeral(t, m, "/d/a", "x", session.WithSequence())
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/d/*", At: zkserver.BeforeReply, Do: zkserver.Delay(2 * time.Second)})
		if err := srv.Delete(e.Path()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		mustBe(t, e.Close(), zk.ErrNoAuth)
	})
}
