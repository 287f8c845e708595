package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// keepEphemeral creates an Ephemeral that must be present at once.
func keepEphemeral(t testing.TB, m *session.Manager, path, data string, opts ...session.EphemeralOption) *session.Ephemeral {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := m.Ephemeral(ctx, path, []byte(data), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// status receives the next status and checks it.
func status(t testing.TB, e *session.Ephemeral, want session.EphemeralStatus) {
	t.Helper()
	select {
	case got, ok := <-e.Status():
		if !ok || got != want {
			t.Fatalf("status %v (open: %v), want %v; Err: %v", got, ok, want, e.Err())
		}
	case <-time.After(time.Minute):
		t.Fatalf("no status within a minute, want %v; Err: %v", want, e.Err())
	}
}

// until receives statuses until it has received want.
func until(t testing.TB, e *session.Ephemeral, want session.EphemeralStatus) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case got, ok := <-e.Status():
			if !ok {
				t.Fatalf("the status is closed, want %v; Err: %v", want, e.Err())
			}
			if got == want {
				return
			}
		case <-limit:
			t.Fatalf("no status %v within a minute; Err: %v", want, e.Err())
		}
	}
}

// mustOwn checks that path is an ephemeral of the present session of m.
func mustOwn(t testing.TB, m *session.Manager, path, data string) {
	t.Helper()
	s := current(t, m)
	got, stat, err := s.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if stat.EphemeralOwner != s.ID() || string(got) != data {
		t.Errorf("%s holds %q and belongs to %#x, want %q and %#x", path, got, stat.EphemeralOwner, data, s.ID())
	}
}

// An Ephemeral is created again under every new session.
func TestEphemeralIsThereInEverySession(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		path := servers.Path(t) + "/deep/down"
		e := keepEphemeral(t, m, path, "one")
		status(t, e, session.Present)
		if e.Path() != path || e.Err() != nil {
			t.Errorf("Path %q, Err %v", e.Path(), e.Err())
		}
		mustOwn(t, m, path, "one")
		for i := range 3 {
			data := fmt.Sprint("round ", i)
			if err := e.Set(t.Context(), []byte(data)); err != nil {
				t.Fatal(err)
			}
			mustOwn(t, m, path, data)
			srv.Expire(t, current(t, m).ID())
			until(t, e, session.Present)
			mustOwn(t, m, path, data)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if ok, _, err := current(t, m).Exists(t.Context(), path); ok || err != nil {
			t.Errorf("after Close it exists: %v, %v", ok, err)
		}
	})
}

// An Ephemeral is created again when another client deletes it.
func TestEphemeralRemovedBySomebody(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		status(t, e, session.Present)
		for range 5 {
			if err := srv.Delete("/a"); err != nil {
				t.Fatal(err)
			}
			until(t, e, session.Present)
			mustOwn(t, m, "/a", "x")
		}
	})
}

// With WithSequence no other znode is in the way of an Ephemeral, and its name differs in every session.
func TestEphemeralWithSequence(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		path := servers.Path(t) + "/member-"
		e := keepEphemeral(t, m, path, "x", session.WithSequence())
		status(t, e, session.Present)
		first := e.Path()
		if !strings.Contains(first, "/_c_") || !strings.Contains(first, "-member-00000") {
			t.Errorf("Path is %q, want a protected name with a number", first)
		}
		mustOwn(t, m, first, "x")
		if err := e.Set(t.Context(), []byte("y")); err != nil {
			t.Fatal(err)
		}
		srv.Expire(t, current(t, m).ID())
		until(t, e, session.Present)
		second := e.Path()
		if second == first {
			t.Errorf("the path is %s in the next session, too", second)
		}
		mustOwn(t, m, second, "y")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if ok, _, err := current(t, m).Exists(t.Context(), second); ok || err != nil {
			t.Errorf("after Close it exists: %v, %v", ok, err)
		}
	})
}

// The znode of another client is a Conflict that names its owner and leaves it untouched, and the Ephemeral is created
// when that znode is gone.
func TestEphemeralConflict(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m, other := srv.Connect(t), srv.Connect(t)
		path := servers.Path(t)
		stranger := current(t, other)
		create(t, stranger, path, zk.FlagEphemeral)
		e := keepEphemeral(t, m, path, "mine")
		status(t, e, session.Conflict)
		mustBe(t, e.Err(), session.ErrConflict, zk.ErrNodeExists)
		if owner := fmt.Sprintf("%#x", uint64(stranger.ID())); !strings.Contains(e.Err().Error(), owner) {
			t.Errorf("%q does not say that it belongs to %s", e.Err(), owner)
		}
		// The conflict is reported once, even if the other client changes the znode.
		for range 3 {
			if _, err := stranger.Set(t.Context(), path, []byte("theirs"), -1); err != nil {
				t.Fatal(err)
			}
		}
		// The events of our own session arrive before the answer to a sync.
		if err := current(t, m).Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-e.Status():
			t.Errorf("told %v, and nothing has changed", got)
		default:
		}
		if data, _, err := stranger.Get(t.Context(), path); err != nil || string(data) != "theirs" {
			t.Errorf("the stranger's znode holds %q, %v", data, err)
		}
		// Also across a loss of our session.
		srv.Expire(t, current(t, m).ID())
		set := make(chan error, 1)
		go func() { set <- e.Set(t.Context(), []byte("newer")) }()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(stranger.Delete(t.Context(), path, -1))
		until(t, e, session.Present)
		must(<-set)
		mustOwn(t, m, path, "newer")
		if e.Err() != nil {
			t.Error("Err is", e.Err())
		}
	})
}

// Each Conflict is reported once and never missed.
func TestEphemeralConflictIsToldOnceAndNeverMissed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		if err := srv.Create("/a", nil); err != nil {
			t.Fatal(err)
		}
		e := keepEphemeral(t, m, "/a", "x")
		if !strings.Contains(e.Err().Error(), "persistent") {
			t.Errorf("%q does not say that the znode is persistent", e.Err())
		}
		// Nobody reads while the conflict comes, goes, and comes again.
		for range 3 {
			synctest.Wait()
			if err := srv.Delete("/a"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			mustOwn(t, m, "/a", "x")
			srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Path: "/a", At: zksynctest.BeforeCommit,
				Do: zksynctest.Call(func() { srv.Create("/a", nil) })})
			if err := srv.Delete("/a"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			mustBe(t, e.Err(), session.ErrConflict)
		}
		if err := srv.Delete("/a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		status(t, e, session.Conflict)
		status(t, e, session.Present)
		time.Sleep(time.Hour)
		select {
		case got := <-e.Status():
			t.Error("told", got, "besides")
		default:
		}
	})
}

// forgetful is a dialer under which a session is told that it has expired,
// because it shows a wrong password, while the server still has it.
type forgetful struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	forget atomic.Bool
}

func (f *forgetful) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := f.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &forgetfulConn{Conn: c, f: f}, nil
}

type forgetfulConn struct {
	net.Conn
	f     *forgetful
	shook bool
}

func (c *forgetfulConn) Write(p []byte) (int, error) {
	// A ConnectRequest: length, version, zxid, timeout, session id, password.
	if !c.shook && len(p) >= 48 && binary.BigEndian.Uint64(p[20:]) != 0 && c.f.forget.Swap(false) {
		p = append([]byte(nil), p...)
		p[32] ^= 0xff
	}
	c.shook = true
	return c.Conn.Write(p)
}

// A znode of our own previous session is waited out and is no conflict.
func TestEphemeralOfOurPreviousSessionIsStillThere(t *testing.T) {
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		f := &forgetful{dial: (&net.Dialer{}).DialContext}
		m, err := session.Connect(t.Context(), srv.Address(), session.WithDialer(f.Dial), session.WithTimeout(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		observer := srv.Connect(t)
		path := servers.Path(t)
		e := keepEphemeral(t, m, path, "x")
		status(t, e, session.Present)
		old := current(t, m)
		f.forget.Store(true)
		srv.Disconnect(t, old.ID())
		<-old.Done()
		next := current(t, m)
		if next.ID() == old.ID() {
			t.Fatal("the session goes on")
		}
		_, stat, err := current(t, observer).Exists(t.Context(), path)
		if err != nil || stat == nil || stat.EphemeralOwner != old.ID() {
			t.Fatalf("the old session's znode is not there: %+v, %v", stat, err)
		}
		for present := false; !present; {
			select {
			case got := <-e.Status():
				if got == session.Conflict {
					t.Error("our own znode is told as a conflict:", e.Err())
				}
				present = got == session.Present
			case <-time.After(30 * time.Second):
				t.Fatal("not present after 30 s:", e.Err())
			}
		}
		mustOwn(t, m, path, "x")
	})
}

// An Ephemeral waits for as long as the server keeps the znode of the previous session.
func TestEphemeralOutlivesItsSessionOnTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		status(t, e, session.Present)
		srv.DelayEphemeralRemoval(50 * time.Second)
		srv.ExpireSession(current(t, m).ID())
		start := time.Now()
		status(t, e, session.Absent)
		status(t, e, session.Present)
		if took := time.Since(start); took < 50*time.Second || took > 51*time.Second {
			t.Errorf("present again after %v, the old one has gone after 50 s", took)
		}
		mustOwn(t, m, "/a", "x")
	})
}

// An Ephemeral comes to exist, regardless of the request that is lost before or after it was carried out.
func TestEphemeralWithLostAnswers(t *testing.T) {
	for _, sequence := range []bool{false, true} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
			for _, op := range []zkserver.OpCode{zkserver.OpCreate, zkserver.OpCreateContainer, zkserver.OpExists, zkserver.OpSetData, zkserver.OpDelete} {
				t.Run(fmt.Sprint(op, at, sequence), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						current(t, m)
						lost := srv.Inject(zksynctest.Fault{Op: op, Times: 2, At: at, Do: zksynctest.Disconnect})
						var opts []session.EphemeralOption
						if sequence {
							opts = append(opts, session.WithSequence())
						}
						e := keepEphemeral(t, m, "/dir/a", "x", opts...)
						status(t, e, session.Present)
						mustOwn(t, m, e.Path(), "x")
						if err := e.Set(t.Context(), []byte("y")); err != nil {
							t.Error(err)
						}
						mustOwn(t, m, e.Path(), "y")
						if names, _ := srv.Children("/dir"); len(names) != 1 {
							t.Errorf("children %v, want one", names)
						}
						if err := e.Close(); err != nil {
							t.Error(err)
						}
						if names, _ := srv.Children("/dir"); len(names) != 0 {
							t.Errorf("children %v after Close", names)
						}
						want := 2
						if op == zkserver.OpDelete && at == zksynctest.AfterCommit {
							want = 1 // Close finds the znode gone, and does not repeat the removal
						}
						if lost.Count() != want {
							t.Errorf("the fault has struck %d times, want %d", lost.Count(), want)
						}
					})
				})
			}
		}
	}
}

// Manager.Ephemeral fails if the znode cannot be created, and leaves nothing when its ctx ends.
func TestEphemeralThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := current(t, m)
		if _, err := s.Create(t.Context(), "/readonly", nil, 0, zk.WorldACL(zk.PermRead)...); err != nil {
			t.Fatal(err)
		}
		closed := srv.Connect(t)
		closed.Close()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, test := range []struct {
			name string
			ctx  context.Context
			m    *session.Manager
			path string
			opt  session.EphemeralOption
			want error
		}{
			{"invalid path", t.Context(), m, "/a/", session.WithEphemeralACL(zk.WorldACL(zk.PermAll)...), session.ErrInvalidPath},
			{"the root", t.Context(), m, "/", nil, session.ErrInvalidOption},
			{"no option", t.Context(), m, "/a", nil, session.ErrInvalidOption},
			{"no ACL", t.Context(), m, "/a", session.WithEphemeralACL(), session.ErrInvalidOption},
			{"no permission", t.Context(), m, "/readonly/a", session.WithSequence(), zk.ErrNoAuth},
			{"manager closed", t.Context(), closed, "/a", session.WithSequence(), session.ErrClosed},
			{"ctx over", over, m, "/a", session.WithSequence(), context.Canceled},
		} {
			if _, err := test.m.Ephemeral(test.ctx, test.path, nil, test.opt); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
		if _, err := m.Ephemeral(t.Context(), "/", nil); !errors.Is(err, session.ErrInvalidPath) {
			t.Error("the root:", err)
		}
		if _, err := m.Ephemeral(t.Context(), "/big", make([]byte, 2<<20)); !errors.Is(err, session.ErrTooLarge) {
			t.Error("too large:", err)
		}
		// The ctx ends while no server answers: the call must leave nothing behind.
		srv.Freeze()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		within(t, 2*time.Second, "a cancelled Ephemeral", func() {
			_, err := m.Ephemeral(short, "/late", nil)
			mustBe(t, err, context.DeadlineExceeded)
		})
		srv.Thaw()
		time.Sleep(time.Second)
		mustExist(t, srv, "/late", false)
	})
}

// A Set waits through losses, takes effect even if its caller gives up, replaces the data of other clients, and
// changes nothing if it is too large.
func TestEphemeralSet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		// The server refuses data that is too large, and the data before stays wanted.
		mustBe(t, e.Set(t.Context(), make([]byte, 2<<20)), session.ErrTooLarge)
		srv.ExpireSession(current(t, m).ID())
		time.Sleep(time.Minute)
		mustOwn(t, m, "/a", "x")

		// The next Set overwrites the write of another client.
		if err := srv.Set("/a", []byte("theirs")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := e.Set(t.Context(), []byte("y")); err != nil {
			t.Fatal(err)
		}
		mustOwn(t, m, "/a", "y")

		// A Set whose ctx ended while no server can be reached still counts.
		srv.HangHandshake(true)
		srv.Disconnect(current(t, m).ID())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustBe(t, e.Set(ctx, []byte("z")), context.DeadlineExceeded)
		srv.HangHandshake(false)
		time.Sleep(time.Minute)
		mustOwn(t, m, "/a", "z")
	})
}

// A Set that the server refuses leaves the data that was written last.
func TestEphemeralWithoutWritePermission(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x", session.WithEphemeralACL(zk.WorldACL(zk.PermRead)...))
		mustBe(t, e.Set(t.Context(), []byte("y")), zk.ErrNoAuth)
		mustOwn(t, m, "/a", "x")
		blind := keepEphemeral(t, m, "/b", "x", session.WithEphemeralACL(zk.WorldACL(zk.PermDelete)...))
		status(t, blind, session.Present)
		if err := blind.Close(); err == nil {
			mustExist(t, srv, "/b", false)
		}
	})
}

// Ephemeral.Close deletes the znode, closes Status, takes the session timeout at most, and continues in the background.
func TestEphemeralClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		status(t, e, session.Present)
		for range 2 {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			mustExist(t, srv, "/a", false)
		}
		status(t, e, session.Absent)
		if _, ok := <-e.Status(); ok {
			t.Error("Status is not closed")
		}
		mustBe(t, e.Err(), session.ErrEphemeralClosed)
		mustBe(t, e.Set(t.Context(), nil), session.ErrEphemeralClosed)

		// Close does not touch the znode of another client.
		if err := srv.Create("/b", nil); err != nil {
			t.Fatal(err)
		}
		b := keepEphemeral(t, m, "/b", "x")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		mustExist(t, srv, "/b", true)

		// While no server can be reached, Close is bounded, and the znode is deleted later.
		c := keepEphemeral(t, m, "/c", "x")
		srv.Freeze()
		within(t, timeout, "Close of an ephemeral on a frozen server", func() {
			if err := c.Close(); err == nil {
				t.Error("Close has removed a znode on a frozen server")
			}
		})
		srv.Thaw()
		time.Sleep(time.Minute)
		mustExist(t, srv, "/c", false)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// When Close of a Manager returns, its Ephemerals have ended: their goroutines are gone and their znodes are deleted.
func TestEphemeralEndsWithItsManager(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		e := keepEphemeral(t, m, "/a", "x")
		for range 200 {
			keepEphemeral(t, m, "/b-", "", session.WithSequence())
		}
		m.Close()
		buf := make([]byte, 4<<20)
		if stacks := string(buf[:runtime.Stack(buf, true)]); strings.Contains(stacks, "(*Ephemeral)") {
			t.Errorf("Close of the Manager has not waited for it:\n%s", stacks)
		}
		for range e.Status() {
		}
		mustBe(t, e.Err(), session.ErrClosed)
		mustExist(t, srv, "/a", false)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
