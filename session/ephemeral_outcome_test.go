package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// keepsOurs creates an ephemeral of the program at /a, and checks that it still exists a minute later.
func keepsOurs(t *testing.T, srv *zksynctest.Server, s *session.Session) {
	t.Helper()
	if _, err := s.Create(t.Context(), "/a", []byte("mine"), zk.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if _, ok := srv.Get("/a"); !ok {
		t.Error("the znode that the program has created behind an Ephemeral is gone")
	}
}

// An Ephemeral that was refused sends no further create, and leaves an ephemeral that the program creates at its path.
func TestARefusedEphemeralIsOver(t *testing.T) {
	unknown := session.WithEphemeralACL(zk.ACL{Perms: zk.PermAll, Scheme: "digest", ID: "nohash"})
	for what, refused := range map[string]struct {
		data string
		opts []session.EphemeralOption
	}{
		"ACL":  {"x", []session.EphemeralOption{unknown}},
		"data": {strings.Repeat("x", 2<<20), nil},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Delay(10 * time.Millisecond), Times: 100})
				if _, err := m.Ephemeral(t.Context(), "/a", []byte(refused.data), refused.opts...); err == nil {
					t.Fatal("the Ephemeral was not refused")
				}
				keepsOurs(t, srv, s)
			})
		})
	}
}

// An Ephemeral whose refusal was returned creates no znode, although the server would accept the next attempt.
func TestARefusedEphemeralCreatesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Error(-102)})
		_, err := m.Ephemeral(t.Context(), "/a", []byte("x"))
		mustBe(t, err, zk.ErrNoAuth)
		time.Sleep(time.Minute)
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpCreate && op.Err == 0 {
				t.Errorf("Ephemeral has returned %v, and then: %v", err, op)
			}
		}
	})
}

// An Ephemeral that is discarded between two creations, all of which were refused, leaves an ephemeral that the program
// creates at its path.
func TestAnEphemeralThatIsDiscardedBetweenRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		status(t, e, session.Present)
		refusals := srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Error(-102), Times: -1})
		srv.ExpireSession(current(t, m).ID())
		time.Sleep(time.Minute)
		refusals.Remove()
		// A look of the Ephemeral at the znode, which must not happen, comes behind the create of the program.
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/a", Do: zkserver.Error(-1), Times: 3})
		e.Discard()
		synctest.Wait()
		keepsOurs(t, srv, current(t, m))
	})
}

// An Ephemeral that ends while the answer to its create is on the way waits for the answer: a refusal proves that an
// ephemeral at its path belongs to another part of the program, and without a refusal the Ephemeral removes its znode.
func TestAnEphemeralThatEndsAheadOfItsAnswer(t *testing.T) {
	for what, refused := range map[string]bool{"refused": true, "created": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := current(t, m)
				srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Delay(time.Second)})
				if refused {
					srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Error(-102)})
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := m.Ephemeral(ctx, "/a", []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if refused {
					keepsOurs(t, srv, s)
					return
				}
				time.Sleep(time.Minute)
				if _, ok := srv.Get("/a"); ok {
					t.Error("the znode of an Ephemeral whose ctx has ended still exists")
				}
			})
		})
	}
}

// A sequential Ephemeral may be in the root, as a znode of CreateProtected, also in the root of a chroot.
func TestSequentialEphemeralInTheRoot(t *testing.T) {
	for _, chroot := range []string{"", "/app"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := connect(t, srv, three+chroot, session.WithCreateChroot())
			e := keepEphemeral(t, m, "/", "x", session.WithSequence())
			mustOwn(t, m, e.Path(), "x")
			if data, _ := srv.Get(chroot + e.Path()); string(data) != "x" {
				t.Errorf("the znode at %s has %q", chroot+e.Path(), data)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			_, err := m.Ephemeral(t.Context(), "/", nil)
			mustBe(t, err, session.ErrInvalidPath)
		})
	}
}
