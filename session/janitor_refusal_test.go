package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The janitor repeats a removal that is refused for a transient or an unknown reason until the removal succeeds, at
// growing intervals. To see this test fail, make Class.pending return false.
func TestJanitorOutlivesRefusals(t *testing.T) {
	for _, code := range []zkserver.Code{throttled, -7, -5, -999} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := current(t, connect(t, srv, three))
				create(t, s, "/x", 0)
				injected := srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Times: -1, Do: zkserver.Error(code)})
				gone := s.Discard("/x")
				time.Sleep(time.Hour)
				select {
				case <-gone:
					t.Fatal("the janitor has given up")
				default:
				}
				if n := injected.Count(); n < 3000 || n > 8000 {
					t.Errorf("%d attempts in an hour, want about one a second", n)
				}
				injected.Remove()
				within(t, 2*time.Second, "the removal", func() { <-gone })
				mustExist(t, srv, "/x", false)
			})
		})
	}
}

// A removal that is refused delays no other removal.
func TestJanitorGoesOnBesideARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		for i := range 300 {
			create(t, s, fmt.Sprintf("/refused%d", i), 0)
			create(t, s, fmt.Sprintf("/x%d", i), 0)
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Path: "/refused*", Times: -1, Do: zkserver.Error(throttled)})
		for i := range 300 {
			s.Discard(fmt.Sprintf("/refused%d", i))
		}
		time.Sleep(time.Minute)
		within(t, 0, "the other removals", func() {
			for i := range 300 {
				<-s.Discard(fmt.Sprintf("/x%d", i))
			}
		})
	})
}

// A removal that the ACL forbids is logged and told on the channel of Discard, and ends if the znode is no ephemeral of the session.
func TestJanitorGivesUpWhatIsForbidden(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zapcore.WarnLevel)
		s := current(t, connect(t, srv, three, session.WithLogger(zap.New(core))))
		if _, err := s.Create(t.Context(), "/dir", nil, 0, zk.WorldACL(zk.PermCreate|zk.PermRead)...); err != nil {
			t.Fatal(err)
		}
		create(t, s, "/dir/x", 0)
		srv.ResetOps()
		within(t, 0, "Discard", func() {
			if err := <-s.Discard("/dir/x"); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("Discard: %v, want the refusal", err)
			}
		})
		time.Sleep(time.Minute)
		if n := count(srv.Ops(), zkserver.OpDelete); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
		if logs.FilterLevelExact(zapcore.ErrorLevel).Len() != 1 {
			t.Errorf("%d messages, want 1", logs.Len())
		}
		mustExist(t, srv, "/dir/x", true)
	})
}

// The janitor tries to remove an ephemeral again that the ACL has protected, at growing intervals, and removes it when the ACL
// permits it. It does not touch a later znode of the same name.
func TestJanitorRemovesWhatIsPermittedLater(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint(replaced), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				core, logs := observer.New(zapcore.WarnLevel)
				s := current(t, connect(t, srv, three, session.WithLogger(zap.New(core))))
				if _, err := s.Create(t.Context(), "/dir", nil, 0, zk.WorldACL(zk.PermCreate|zk.PermRead)...); err != nil {
					t.Fatal(err)
				}
				create(t, s, "/dir/x", zk.FlagEphemeral)
				within(t, 0, "Discard", func() {
					if err := <-s.Discard("/dir/x"); !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("Discard: %v, want the refusal", err)
					}
				})
				srv.ResetOps()
				time.Sleep(time.Hour)
				if n := count(srv.Ops(), zkserver.OpDelete); n < 15 || n > 40 {
					t.Errorf("%d attempts in an hour, want the last ones about five minutes apart", n)
				}
				if n := logs.FilterMessage("znode was not removed, and is tried again now and then").Len(); n != 1 || logs.Len() != 1 {
					t.Errorf("%d messages of %d, want one", n, logs.Len())
				}
				if replaced {
					if err := srv.Delete("/dir/x"); err != nil {
						t.Fatal(err)
					}
					create(t, s, "/dir/x", zk.FlagEphemeral)
				}
				if err := srv.SetACL("/dir", []zkserver.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				mustExist(t, srv, "/dir/x", replaced)
				srv.ResetOps()
				time.Sleep(time.Hour)
				if n := count(srv.Ops(), zkserver.OpGetData); n != 0 {
					t.Errorf("%d looks after the znode was removed", n)
				}
			})
		})
	}
}

// The janitor believes that a znode is absent after a lost answer only behind a commit. To see this test fail, make
// chore.absent return nil.
func TestJanitorBelievesInNoAbsenceWithoutACommit(t *testing.T) {
	for _, flags := range []int32{zk.FlagEphemeral, zk.FlagEphemeralSequential} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/dir", 0)
			orphan, _, leave := loseACreate(t, srv, s, flags)
			leave()
			// A leader that was deposed does not show the orphan, and commits nothing.
			commits := withoutCommits(srv)
			srv.Disconnect(s.ID())
			time.Sleep(10 * time.Second)
			if err := srv.Create(orphan, nil); err != nil { // by the successor of the leader
				t.Fatal(err)
			}
			commits()
			time.Sleep(time.Minute)
			mustExist(t, srv, orphan, false)
		})
	}
}

// A protected create whose answer was lost is repeated only when a commit proves that the znode is absent. To see
// this test fail, remove SyncQuorum from lookForProtected.
func TestCreateProtectedBelievesInNoAbsenceWithoutACommit(t *testing.T) {
	for _, flags := range []int32{zk.FlagEphemeral, zk.FlagEphemeralSequential} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			create(t, s, "/dir", 0)
			orphan, created, leave := loseACreate(t, srv, s, flags)
			commits := withoutCommits(srv)
			srv.Disconnect(s.ID())
			time.Sleep(5 * time.Second)
			if err := srv.Create(orphan, nil); err != nil {
				t.Fatal(err)
			}
			commits()
			srv.Disconnect(s.ID())
			time.Sleep(time.Minute)
			select {
			case path := <-created:
				if path != orphan {
					t.Errorf("created %q, and there is %s", path, orphan)
				}
			default:
				t.Error("CreateProtected has not returned")
				leave()
			}
			if names := children(srv, "/dir"); len(names) != 1 {
				t.Errorf("created several times: %v", names)
			}
		})
	}
}

// withoutCommits makes the server answer no transaction until commits is called.
func withoutCommits(srv *zksynctest.Server) (commits func()) {
	multi := srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Times: -1, At: zkserver.BeforeReply, Do: zkserver.Drop})
	deletion := srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Times: -1, Do: zkserver.Drop})
	return func() {
		multi.Remove()
		deletion.Remove()
	}
}

// loseACreate makes a protected create below /dir whose request is lost. It returns the path of the znode that the
// request would create, a channel for the result of the call, and a function that ends the call.
func loseACreate(t *testing.T, srv *zksynctest.Server, s *session.Session, flags int32) (orphan string, created <-chan string, leave func()) {
	t.Helper()
	srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/dir/*", Do: zkserver.Drop})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan string, 1)
	srv.ResetOps()
	go func() {
		path, _ := s.CreateProtected(ctx, "/dir/x", nil, flags)
		result <- path
	}()
	synctest.Wait()
	for _, op := range srv.Ops() {
		if op.Code == zkserver.OpCreate {
			orphan = op.Path
		}
	}
	if flags == zk.FlagEphemeralSequential {
		orphan += "0000000000"
	}
	return orphan, result, func() {
		cancel()
		<-result
	}
}
