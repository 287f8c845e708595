package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var openToAll = []zkserver.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}

// A removal that an ACL has refused never strikes a later znode of the path, by Discard or by Close: also if the look at
// the first one was refused or throttled, and if the later one was created right after the refusal.
func TestRefusedRemovalLeavesLaterZnodes(t *testing.T) {
	refusedBy := map[string]func(t *testing.T, m *session.Manager, srv *zksynctest.Server) error{
		"Discard": func(t *testing.T, m *session.Manager, _ *zksynctest.Server) error {
			create(t, current(t, m), "/dir/x", zk.FlagEphemeral)
			return <-current(t, m).Discard("/dir/x")
		},
		"Close": func(t *testing.T, m *session.Manager, _ *zksynctest.Server) error {
			return keepEphemeral(t, m, "/dir/x", "").Close()
		},
		"Close with throttled reads": func(t *testing.T, m *session.Manager, srv *zksynctest.Server) error {
			e := keepEphemeral(t, m, "/dir/x", "")
			srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/dir/x", Times: 10, Do: zkserver.Error(throttled)})
			return e.Close()
		},
		"Close without READ": func(t *testing.T, m *session.Manager, _ *zksynctest.Server) error {
			return keepEphemeral(t, m, "/dir/x", "", session.WithEphemeralACL(zk.WorldACL(zk.PermWrite)...)).Close()
		},
	}
	for name, refused := range refusedBy {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				if _, err := current(t, m).Create(t.Context(), "/dir", nil, 0, zk.WorldACL(zk.PermCreate|zk.PermRead)...); err != nil {
					t.Fatal(err)
				}
				if err := refused(t, m, srv); !errors.Is(err, zk.ErrNoAuth) {
					t.Fatalf("%v, want the refusal", err)
				}
				// Only its version protects a znode that replaces another one between a look and the removal.
				synctest.Wait()
				mustBe(t, srv.Delete("/dir/x"), nil)
				create(t, current(t, m), "/dir/x", zk.FlagEphemeral)
				mustBe(t, srv.SetACL("/dir", openToAll), nil)
				time.Sleep(time.Hour)
				mustExist(t, srv, "/dir/x", true)
			})
		})
	}
}

// DiscardCreated removes the ephemeral of its transaction, also when it may be read and removed only later, and no
// other one.
func TestDiscardCreated(t *testing.T) {
	for _, other := range []int64{0, 1} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/dir", 0)
			create(t, s, "/dir/x", zk.FlagEphemeral)
			_, stat, err := s.Exists(t.Context(), "/dir/x")
			mustBe(t, err, nil)
			mustBe(t, srv.SetACL("/dir/x", []zkserver.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}), nil)
			if err := <-s.DiscardCreated("/dir/x", stat.Czxid+other); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%v, want the refusal to show the znode", err)
			}
			mustBe(t, srv.SetACL("/dir/x", openToAll), nil)
			time.Sleep(10 * time.Minute)
			mustExist(t, srv, "/dir/x", other != 0)
		})
	}
}

// An Ephemeral that may not be read, and whose removal was refused at Close, is removed when the permissions are given.
func TestUnreadableEphemeralIsRemovedLater(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		create(t, current(t, m), "/dir", 0)
		e := keepEphemeral(t, m, "/dir/x", "", session.WithEphemeralACL(zk.WorldACL(zk.PermWrite)...))
		mustBe(t, srv.SetACL("/dir", []zkserver.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}), nil)
		if err := e.Close(); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("Close: %v, want the refusal", err)
		}
		mustBe(t, srv.SetACL("/dir", openToAll), nil)
		mustBe(t, srv.SetACL("/dir/x", openToAll), nil)
		time.Sleep(10 * time.Minute)
		mustExist(t, srv, "/dir/x", false)
	})
}

// A sequential Ephemeral leaves no work behind for a znode that never existed, after a refused creation and after a
// Close whose znode was removed in time.
func TestSequentialEphemeralWithoutAZnodeLeavesNoWork(t *testing.T) {
	cases := map[string]func(t *testing.T, m *session.Manager, srv *zksynctest.Server){
		"refused": func(t *testing.T, m *session.Manager, srv *zksynctest.Server) {
			mustBe(t, srv.SetACL("/dir", []zkserver.ACL{{Perms: zk.PermAdmin, Scheme: "world", ID: "anyone"}}), nil)
			if _, err := m.Ephemeral(t.Context(), "/dir/x", nil, session.WithSequence()); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("Ephemeral: %v, want the refusal", err)
			}
		},
		"closed": func(t *testing.T, m *session.Manager, srv *zksynctest.Server) {
			mustBe(t, srv.SetACL("/dir", []zkserver.ACL{{Perms: zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}}), nil)
			e := keepEphemeral(t, m, "/dir/x", "", session.WithSequence())
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/dir/*", At: zkserver.AfterCommit, Do: zkserver.Delay(time.Second)})
			mustBe(t, srv.Delete(e.Path()), nil)
			time.Sleep(time.Second / 2) // the Ephemeral is created again
			mustBe(t, e.Close(), nil)
			if left := children(srv, "/dir"); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		},
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				create(t, current(t, m), "/dir", 0)
				play(t, m, srv)
				srv.ResetOps()
				time.Sleep(time.Hour)
				if n := count(srv.Ops(), zkserver.OpGetChildren2); n > 0 {
					t.Errorf("%d lists in an hour, for a znode that does not exist", n)
				}
			})
		})
	}
}
