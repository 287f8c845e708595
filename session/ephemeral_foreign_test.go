package session_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A znode that another part of the program has created in the same session is a Conflict: the Ephemeral leaves it
// untouched, also at Close, and creates its own when the other has gone.
func TestEphemeralBesideAnotherOfTheSession(t *testing.T) {
	for _, acl := range [][]zk.ACL{zk.WorldACL(zk.PermAll), zk.WorldACL(zk.PermWrite)} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			s := current(t, m)
			if _, err := s.Create(t.Context(), "/a", []byte("mine"), zk.FlagEphemeral, acl...); err != nil {
				t.Fatal(err)
			}
			e := keepEphemeral(t, m, "/a", "x")
			status(t, e, session.Conflict)
			mustBe(t, e.Err(), session.ErrConflict)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if data, _ := srv.Get("/a"); string(data) != "mine" {
				t.Errorf("the other znode has %q after Close, want %q", data, "mine")
			}
			e = keepEphemeral(t, m, "/a", "x")
			status(t, e, session.Conflict)
			if err := srv.Delete("/a"); err != nil {
				t.Fatal(err)
			}
			status(t, e, session.Present)
		})
	}
}

// The same, when the request that would create the Ephemeral's znode is lost, and when Close comes while it is under way.
func TestEphemeralBesideAnotherAfterALostCreate(t *testing.T) {
	faults := map[string]zkserver.Fault{
		"lost":      {Op: zkserver.OpCreate, Path: "/a", At: zkserver.BeforeCommit, Do: zkserver.Disconnect},
		"under way": {Op: zkserver.OpCreate, Path: "/a", At: zkserver.BeforeReply, Do: zkserver.Delay(time.Second), Nth: 2},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				if _, err := s.Create(t.Context(), "/a", nil, zk.FlagEphemeral); err != nil {
					t.Fatal(err)
				}
				srv.Inject(fault)
				e := keepEphemeral(t, m, "/a", "x")
				status(t, e, session.Conflict)
				if _, err := s.Set(t.Context(), "/a", []byte("mine"), -1); err != nil { // the Ephemeral tries again
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if data, _ := srv.Get("/a"); string(data) != "mine" {
					t.Errorf("the other znode has %q after Close, want %q", data, "mine")
				}
			})
		})
	}
}

// If Close could not remove the znode of an Ephemeral, the next Ephemeral of the path is in Conflict with that znode, and
// not Present with its data.
func TestEphemeralBehindOneThatWasNotRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		if _, err := current(t, m).Create(t.Context(), "/dir", nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate)...); err != nil {
			t.Fatal(err)
		}
		first := keepEphemeral(t, m, "/dir/a", "one", session.WithEphemeralACL(zk.WorldACL(zk.PermRead)...))
		mustBe(t, first.Close(), zk.ErrNoAuth)
		second := keepEphemeral(t, m, "/dir/a", "two")
		status(t, second, session.Conflict)
	})
}

// The data of a Set whose ctx has ended is written as soon as possible, also if the creation is refused meanwhile for a
// reason other than the data.
func TestWantedDataOutliveARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/d/a", "one")
		id := current(t, m).ID()
		srv.Partition(id)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustBe(t, e.Set(ctx, []byte("two")), context.DeadlineExceeded)
		if err := srv.ExpireSession(id); err != nil {
			t.Fatal(err)
		}
		if err := srv.Delete("/d"); err != nil {
			t.Fatal(err)
		}
		other := keepEphemeral(t, srv.Connect(t), "/d", "") // in the place of the directory
		srv.Heal(id)
		time.Sleep(30 * time.Second)
		mustBe(t, e.Err(), zk.ErrNoChildrenForEphemerals)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if data, _ := srv.Get("/d/a"); string(data) != "two" || e.Err() != nil {
			t.Errorf("data %q, Err %v, want two", data, e.Err())
		}
	})
}

// The error of Close of an Ephemeral whose dials time out has ClassTransient: no ctx of the caller has ended.
func TestCloseWhileDialsTimeOut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var down atomic.Bool
		m := srv.Connect(t, session.WithTimeout(4*time.Second), session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
			}
			return srv.Dial(ctx, network, address)
		}))
		e := keepEphemeral(t, m, "/a", "x")
		time.Sleep(10 * time.Second)
		down.Store(true)
		if err := srv.Disconnect(current(t, m).ID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		if err := e.Close(); session.ClassOf(err) != session.ClassTransient || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v of class %v, want Transient, and no end of a ctx", err, session.ClassOf(err))
		}
		down.Store(false)
	}, zksynctest.WithConfig(zkserver.Config{MinSessionTimeout: time.Minute}))
}
