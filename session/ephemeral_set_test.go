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

// Of Sets at the same time the last one counts, and its outcome is the outcome of all of them.
func TestEphemeralSetAtTheSameTime(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		srv.Freeze()
		results := make(chan error, 3)
		for _, data := range []string{"first", "second", "third"} {
			go func() { results <- e.Set(t.Context(), []byte(data)) }()
			synctest.Wait()
		}
		srv.Thaw()
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		mustOwn(t, m, "/a", "third")

		// All calls share a refusal, too.
		e = keepEphemeral(t, m, "/b", "x", session.WithEphemeralACL(zk.WorldACL(zk.PermRead)...))
		srv.Freeze()
		for _, data := range []string{"first", "second"} {
			go func() { results <- e.Set(t.Context(), []byte(data)) }()
			synctest.Wait()
		}
		srv.Thaw()
		for range 2 {
			mustBe(t, <-results, zk.ErrNoAuth)
		}
		mustOwn(t, m, "/b", "x")
	})
}

// The data that another client writes to an Ephemeral stays until the next Set or session.
func TestEphemeralLeavesWhatOthersWrite(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		keepEphemeral(t, m, "/a", "x")
		if err := srv.Set("/a", []byte("theirs")); err != nil {
			t.Fatal(err)
		}
		srv.Disconnect(current(t, m).ID())
		time.Sleep(time.Hour)
		mustOwn(t, m, "/a", "theirs")
		srv.ExpireSession(current(t, m).ID())
		time.Sleep(time.Minute)
		mustOwn(t, m, "/a", "x")
	})
}

// Ephemeral.Close returns an error if the servers refuse the removal.
func TestEphemeralThatMayNotBeRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		if _, err := s.Create(t.Context(), "/dir", nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate)...); err != nil {
			t.Fatal(err)
		}
		e := keepEphemeral(t, m, "/dir/a", "x")
		within(t, time.Second, "Close", func() { mustBe(t, e.Close(), zk.ErrNoAuth) })
		mustExist(t, srv, "/dir/a", true)
	})
}

// The ctx of Connect, and of Ephemeral, bounds only that call.
func TestContextsOfConstructionBoundThatAlone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		m, err := session.Connect(ctx, three, session.WithDialer(srv.Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		e, err := m.Ephemeral(ctx, "/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		srv.ExpireSession(current(t, m).ID())
		time.Sleep(time.Hour)
		if current(t, m).Err() != nil || e.Err() != nil {
			t.Errorf("%v, %v", current(t, m).Err(), e.Err())
		}
		mustOwn(t, m, "/a", "")
	})
}

// An Ephemeral whose znode may no longer be read is not asked for again and again.
func TestEphemeralThatMayNotBeLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		own := keepEphemeral(t, m, "/e", "x")
		time.Sleep(time.Second)
		refused := srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/e", Times: 100, At: zksynctest.BeforeCommit, Do: zksynctest.Error(-102)})
		if err := srv.Set("/e", []byte("by another")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := refused.Count(); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
		if err := own.Set(t.Context(), []byte("y")); err != nil {
			t.Error(err)
		}
		refused.Remove()
		mustOwn(t, m, "/e", "y")
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		mustExist(t, srv, "/e", false)
	})
}

// Close removes the znode of an Ephemeral that may not be read.
func TestEphemeralThatMayNotBeReadIsRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		acl    []zk.ACL
		fault  zksynctest.Fault
		writes int
	}{
		"from the beginning":       {acl: zk.WorldACL(zk.PermWrite)},
		"since its creation":       {acl: zk.WorldACL(zk.PermAll), fault: zksynctest.Fault{Op: zkserver.OpExists, Path: "/e", Times: -1, Do: zksynctest.Error(-102)}},
		"since a write":            {acl: zk.WorldACL(zk.PermAll), fault: zksynctest.Fault{Op: zkserver.OpExists, Path: "/e", Times: -1, Do: zksynctest.Error(-102)}, writes: 3},
		"from the beginning, Sets": {acl: zk.WorldACL(zk.PermWrite), writes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				own, err := m.Ephemeral(t.Context(), "/e", []byte("x"), session.WithEphemeralACL(test.acl...))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				for range test.writes {
					if err := own.Set(t.Context(), []byte("y")); err != nil {
						t.Error(err)
					}
				}
				if test.fault.Op != 0 {
					srv.Inject(test.fault)
				}
				if err := own.Close(); err != nil {
					t.Error(err)
				}
				mustExist(t, srv, "/e", false)
			})
		})
	}
}
