package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Err and Set of a closed Ephemeral report that it is closed, and not the end of a context.
func TestAClosedEphemeralSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		e := keepEphemeral(t, srv.Connect(t), "/a", "x")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"Err": e.Err(), "Set": e.Set(context.Background(), nil)} {
			if !errors.Is(err, session.ErrEphemeralClosed) || session.ClassOf(err) != session.ClassFinal {
				t.Errorf("%s: %v of class %v, want ErrEphemeralClosed of class Final", what, err, session.ClassOf(err))
			}
		}
	})
}

// Err of an Ephemeral has a documented reason with a class while its znode is missing.
func TestErrOfAnEphemeralHasAClass(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Path: "/a", Do: zkserver.Hold(release)})
		if err := srv.Delete("/a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c := session.ClassOf(e.Err()); c != session.ClassRemoved {
			t.Errorf("after another client has removed the znode: %v of class %v, want Removed", e.Err(), c)
		}
		close(release)
		synctest.Wait()

		srv.DelayEphemeralRemoval(time.Minute)
		if err := srv.ExpireSession(current(t, m).ID()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if c := session.ClassOf(e.Err()); c != session.ClassLost {
			t.Errorf("behind the znode of the previous session: %v of class %v, want Lost", e.Err(), c)
		}
	})
}

// The errors of callers that use a Lease or MultiProtected wrongly have a class.
func TestMistakesOfCallersHaveAClass(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, srv.Connect(t))
		l := s.Lease()
		l.End()
		_, _, err := s.MultiProtected(t.Context())
		for what, err := range map[string]error{"Hold of an ended lease": l.Hold(), "MultiProtected of nothing": err} {
			if c := session.ClassOf(err); c != session.ClassFinal {
				t.Errorf("%s: %v of class %v, want Final", what, err, c)
			}
		}
	})
}

// An Ephemeral of the same path has no Conflict with another one from its Discard on, and its wait has the reason.
func TestNoConflictWithADiscardedEphemeral(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a := keepEphemeral(t, m, "/a", "x")
		b := keepEphemeral(t, m, "/a", "y")
		mustBe(t, b.Err(), session.ErrConflict)
		fault := srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Path: "/a", Do: zkserver.Error(-1), Times: -1})
		a.Discard()
		synctest.Wait()
		if err := b.Err(); errors.Is(err, session.ErrConflict) || session.ClassOf(err) != session.ClassTransient {
			t.Errorf("after Discard of the other one: %v of class %v, want Transient", err, session.ClassOf(err))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Set(ctx, nil); session.WaitReason(err) == nil {
			t.Error("Set that waits for the znode of a discarded Ephemeral has no reason:", err)
		}
		fault.Remove()
	})
}

// The znode has the wanted data after a Set whose outcome was unknown and another Set that was refused.
func TestARefusedSetBehindAnUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		e := keepEphemeral(t, srv.Connect(t), "/a", "x")
		srv.Inject(zkserver.Fault{Op: zkserver.OpSetData, Path: "/a", At: zkserver.AfterCommit, Do: zkserver.Error(-1)})
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/a", Do: zkserver.Hold(release)})
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- e.Set(t.Context(), []byte("first")) }()
		synctest.Wait()
		go func() { second <- e.Set(t.Context(), []byte(strings.Repeat("b", 2<<20))) }()
		synctest.Wait()
		close(release)
		mustBe(t, <-first, session.ErrTooLarge) // the outcome of the last Set
		mustBe(t, <-second, session.ErrTooLarge)
		synctest.Wait()
		if data, _ := srv.Get("/a"); string(data) != "x" {
			t.Errorf("both Sets were refused, and the znode has %q, want %q", data, "x")
		}
	})
}

// A call of an Ephemeral that waits because servers refuse its requests has the refusal in its error, and so has the log.
func TestCallsOfAnEphemeralSayWhyTheyWait(t *testing.T) {
	open := func(ctx context.Context, m *session.Manager, opts ...session.EphemeralOption) error {
		e, err := m.Ephemeral(ctx, "/d/e", nil, opts...)
		if err == nil {
			err = e.Close()
		}
		return err
	}
	numbered := func(ctx context.Context, m *session.Manager) error { return open(ctx, m, session.WithSequence()) }
	set := func(ctx context.Context, m *session.Manager) error {
		e, err := m.Ephemeral(ctx, "/d/e", nil)
		if err != nil {
			return err
		}
		return e.Set(ctx, []byte("x"))
	}
	for _, c := range []struct {
		what string
		call func(context.Context, *session.Manager) error
		op   zkserver.OpCode
		code zkserver.Code
	}{
		{"creation", func(ctx context.Context, m *session.Manager) error { return open(ctx, m) }, zkserver.OpCreate, -127},
		{"creation", func(ctx context.Context, m *session.Manager) error { return open(ctx, m) }, zkserver.OpCreate, -7},
		{"creation", func(ctx context.Context, m *session.Manager) error { return open(ctx, m) }, zkserver.OpCreate, -101},
		{"creation", func(ctx context.Context, m *session.Manager) error { return open(ctx, m) }, zkserver.OpCreate, -110},
		{"creation with a number", numbered, zkserver.OpCreate, -127},
		{"creation with a number", numbered, zkserver.OpCreate, -7},
		{"directory", numbered, zkserver.OpCreateContainer, -127},
		{"directory", numbered, zkserver.OpCreateContainer, -101},
		{"look", func(ctx context.Context, m *session.Manager) error { return open(ctx, m) }, zkserver.OpExists, -127},
		{"Set", set, zkserver.OpSetData, -127},
		{"Set", set, zkserver.OpSetData, -7},
		{"Set", set, zkserver.OpSetData, -1},
		{"Close", func(_ context.Context, m *session.Manager) error { return open(context.Background(), m) }, zkserver.OpDelete, -127},
		{"Close", func(_ context.Context, m *session.Manager) error { return open(context.Background(), m) }, zkserver.OpDelete, -103},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			core, logs := observer.New(zapcore.WarnLevel)
			m := srv.Connect(t, session.WithLogger(zap.New(core)))
			fault := srv.Inject(zkserver.Fault{Op: c.op, Do: zkserver.Error(c.code), Times: -1})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := c.call(ctx, m)
			if class := session.ClassOf(err); class != session.ClassCancelled && class != session.ClassTransient || !strings.Contains(err.Error(), "times, at last: ") {
				t.Errorf("%s at code %d: %v of class %v, want a reason", c.what, c.code, err, class)
			}
			if logs.FilterMessage("a call waited").Len() == 0 {
				t.Errorf("%s at code %d: the log has no reason for the wait", c.what, c.code)
			}
			fault.Remove()
		})
	}
}

// Close of an Ephemeral leaves the znode that another client has created at the path when the answer to the removal
// was lost, or when the server had refused the removal for a reason that passes.
func TestCloseLeavesALaterZnode(t *testing.T) {
	for _, throttled := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			e := keepEphemeral(t, srv.Connect(t), "/a", "x")
			removal, then := zkserver.Fault{Op: zkserver.OpDelete, Path: "/a", At: zkserver.AfterCommit}, zkserver.Disconnect
			if throttled {
				removal.At, then = zkserver.BeforeCommit, zkserver.Error(-127)
			}
			removal.Do = zkserver.Call(func() {
				if throttled {
					mustBe(t, srv.Delete("/a"), nil)
				}
				mustBe(t, srv.Create("/a", []byte("another")), nil)
			})
			srv.Inject(removal)
			removal.Do = then
			srv.Inject(removal)
			mustBe(t, e.Close(), nil)
			if data, ok := srv.Get("/a"); string(data) != "another" {
				t.Errorf("throttled %v: Close has removed the znode of another client: %q, %v", throttled, data, ok)
			}
		})
	}
}
