package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func roll(all []zksync.Member) string {
	text := ""
	for _, m := range all {
		text += m.ID + "=" + string(m.Data) + " "
	}
	return text
}

// A member is listed from Join to Leave with the data of its last Set, and a Member that was listed cannot be changed:
// ErrNotHeld.
func TestGroupJoinSetLeave(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		g := zksync.NewGroup(m, path)
		expect := func(want string) {
			t.Helper()
			if all, err := g.Members(t.Context()); err != nil || roll(all) != want {
				t.Fatalf("members %q, want %q; error %v", roll(all), want, err)
			}
		}
		expect("")
		a, err := g.Join(t.Context(), "a", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		other := srv.Connect(t)
		b, err := zksync.NewGroup(other, path).Join(t.Context(), "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		expect("a=1 b= ")
		if err := a.Set(t.Context(), []byte("2")); err != nil {
			t.Error(err)
		}
		expect("a=2 b= ")
		all, _ := g.Members(t.Context())
		if all[1].Session != live(t, other).ID() || all[1].Token <= all[0].Token {
			t.Errorf("members %+v", all)
		}
		if err := all[1].Leave(); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Leave of a member that was listed: %v", err)
		}
		if err := all[1].Set(t.Context(), nil); !errors.Is(err, zksync.ErrNotHeld) {
			t.Errorf("Set of a member that was listed: %v", err)
		}
		if err := b.Leave(); err != nil {
			t.Error(err)
		}
		if err := b.Leave(); err != nil {
			t.Errorf("Leave twice: %v", err)
		}
		expect("a=2 ")
		if _, err := g.Join(t.Context(), "b", []byte("again")); err != nil {
			t.Error(err)
		}
		expect("a=2 b=again ")
	})
}

// An id that another member has is ErrIDTaken, also within one Manager, where the second Ephemeral of a path has a
// Conflict with the first, and WithIDWait waits for it.
func TestGroupIDsAreUnique(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		g := zksync.NewGroup(m, "/members")
		a, err := g.Join(t.Context(), "a", []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []*zksync.Group{g, zksync.NewGroup(m, "/members"), zksync.NewGroup(srv.Connect(t), "/members")} {
			if _, err := other.Join(t.Context(), "a", nil); !errors.Is(err, zksync.ErrIDTaken) {
				t.Errorf("Join with an id that is taken: %v", err)
			}
		}
		if data, _ := srv.Get("/members/a"); string(data) != "first" {
			t.Errorf("the data of the one that was there: %q", data)
		}

		patient := zksync.NewGroup(srv.Connect(t), "/members", zksync.WithIDWait())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := patient.Join(ctx, "a", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Join that waited in vain: %v", err)
		}
		cancel()
		joined := make(chan error, 1)
		go func() {
			_, err := patient.Join(t.Context(), "a", []byte("second"))
			joined <- err
		}()
		time.Sleep(time.Hour)
		select {
		case err := <-joined:
			t.Fatalf("joined while the id was taken: %v", err)
		default:
		}
		if err := a.Leave(); err != nil {
			t.Error(err)
		}
		if err := <-joined; err != nil {
			t.Error(err)
		}
		if data, _ := srv.Get("/members/a"); string(data) != "second" {
			t.Errorf("the data of the next: %q", data)
		}
	})
}

// A Join that its ctx has ended is not in the way of the next Join of the same Manager, also if the znode of the first
// Join is still being created.
func TestJoinAfterACancelledJoin(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		other, err := zksync.NewGroup(srv.Connect(t), "/members").Join(t.Context(), "a", nil)
		must(t, err)
		m := srv.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := zksync.NewGroup(m, "/members", zksync.WithIDWait()).Join(ctx, "a", nil)
			first <- err
			_, err = zksync.NewGroup(m, "/members").Join(t.Context(), "a", nil)
			second <- err
		}()
		synctest.Wait()
		release := make(chan struct{})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Path: "/members/a", Do: zksynctest.Hold(release)})
		must(t, other.Leave())
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first Join: %v, want the end of its ctx", err)
		}
		synctest.Wait()
		close(release)
		if err := <-second; err != nil {
			t.Errorf("the second Join: %v", err)
		}
	})
}

// The Status of a membership delivers nothing after Join until the znode changes.
func TestMemberStatusDeliversChanges(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		me, err := zksync.NewGroup(srv.Connect(t), "/members").Join(t.Context(), "a", nil)
		must(t, err)
		select {
		case st := <-me.Status():
			t.Errorf("the status after Join: %v, want none", st)
		case <-time.After(time.Hour):
		}
		// A reader that does not wait already may get the next status in place of this one.
		got := make(chan session.EphemeralStatus)
		go func() { got <- <-me.Status() }()
		synctest.Wait()
		must(t, srv.Delete("/members/a"))
		if st := <-got; st != session.Absent {
			t.Errorf("the status after a removal: %v, want Absent", st)
		}
	})
}

// A member stays over lost connections, and comes back under the next session.
func TestMembershipComesBack(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		me, err := zksync.NewGroup(m, "/members").Join(t.Context(), "a", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		s := live(t, m)
		srv.Disconnect(s.ID())
		time.Sleep(time.Minute)
		if data, ok := srv.Get("/members/a"); !ok || string(data) != "x" || live(t, m) != s {
			t.Error("a dropped connection cost the membership")
		}
		srv.ExpireSession(s.ID())
		time.Sleep(time.Minute)
		if data, ok := srv.Get("/members/a"); !ok || string(data) != "x" {
			t.Error("the membership did not come back under the next session")
		}
		if st := <-me.Status(); st != session.Present {
			t.Errorf("status %v", st)
		}
	})
}

// A Group refuses an invalid id, path or option by the first call, and every call after Close of the Manager is
// ErrClosed.
func TestGroupMisuse(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		g := zksync.NewGroup(m, "/members")
		for _, id := range []string{"", "a/b", ".", "a\x00"} {
			if _, err := g.Join(t.Context(), id, nil); !errors.Is(err, session.ErrInvalidPath) {
				t.Errorf("Join(%q): %v", id, err)
			}
		}
		if _, err := zksync.NewGroup(m, "x").Members(t.Context()); !errors.Is(err, session.ErrInvalidPath) {
			t.Errorf("Members of a bad path: %v", err)
		}
		if _, err := zksync.NewGroup(m, "/x", nil).Join(t.Context(), "a", nil); !errors.Is(err, zksync.ErrInvalidOption) {
			t.Errorf("an option that is nil: %v", err)
		}
		m.Close()
		if _, err := g.Join(t.Context(), "a", nil); !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("Join after Close: %v", err)
		}
	})
}

// Join does not report an id as taken because an earlier Join of this process has failed and cannot clean up yet
// (Ephemeral.awaitOther).
func TestJoinAgainAfterAFailure(t *testing.T) {
	t.Run("partition", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			id := live(t, m).ID()
			g := zksync.NewGroup(m, "/g")
			srv.Partition(id)
			for i := range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err := g.Join(ctx, "a", nil)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Join %d of an id that nobody has, without a server: %v", i+1, err)
				}
			}
		})
	})
	t.Run("internal error", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			g := zksync.NewGroup(m, "/g")
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/g/a", Op: zkserver.OpCreate, Do: zksynctest.Error(-1)})
			if _, err := g.Join(t.Context(), "a", nil); err == nil {
				t.Fatal("no error")
			}
			if _, err := g.Join(t.Context(), "a", nil); err != nil {
				t.Error("Join of an id that nobody has:", err)
			}
		})
	})
}

// Members returns all members beside a znode of another program that has too much data, and fails if a member has too much.
// Breaks if readChild returns the error of its read at once.
func TestMembersBesideALargeZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t, session.WithMaxAnswer(4<<10))
		g := zksync.NewGroup(m, "/g")
		_, err := g.Join(t.Context(), "a", nil)
		must(t, err)
		must(t, srv.Create("/g/large", make([]byte, 8<<10)))
		if all, err := g.Members(t.Context()); err != nil || len(all) != 1 || all[0].ID != "a" {
			t.Errorf("members %v, error %v; want a", all, err)
		}
		_, err = zksync.NewGroup(srv.Connect(t), "/g").Join(t.Context(), "b", make([]byte, 8<<10))
		must(t, err)
		if all, err := g.Members(t.Context()); !errors.Is(err, session.ErrAnswerTooLarge) {
			t.Errorf("members %v, error %v; want %v", all, err, session.ErrAnswerTooLarge)
		}
	})
}

// Members and Watch leave out the znodes that this client may not read, members or not, and show all others.
// Breaks if readChild returns the refusal of a read.
func TestMembersBesideUnreadableZnodes(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		g := zksync.NewGroup(srv.Connect(t), path)
		_, err := g.Join(t.Context(), "a", nil)
		must(t, err)
		other := live(t, srv.Connect(t, session.WithAuth("digest", []byte("u:p")), session.WithACL(zk.AuthACL(zk.PermAll)...)))
		for name, flags := range map[string]int32{"b": zk.FlagEphemeral, "notes": zk.FlagPersistent} {
			_, err = other.Create(t.Context(), path+"/"+name, nil, flags)
			must(t, err)
		}
		if all, err := g.Members(t.Context()); err != nil || roll(all) != "a= " {
			t.Errorf("members %v, error %v; want a", all, err)
		}
		if all := <-g.Watch(t.Context()).Events(); roll(all) != "a= " {
			t.Errorf("Watch: members %v, want a", all)
		}
	})
}

// A group that always has a member is never listed as empty, also when the data of the znodes must be read again.
// Breaks if readChild takes a znode that has gone for a znode that is no member.
func TestMembersAreNeverNone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		g := zksync.NewGroup(srv.Connect(t), "/g")
		other := zksync.NewGroup(srv.Connect(t), "/g")
		a, err := other.Join(t.Context(), "a", nil)
		must(t, err)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: "/g/a", Do: zksynctest.Error(zkserver.ErrSystem)})
		// Between the listing and the second look at the children, b joins and then a leaves.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/g/a", Do: zksynctest.Call(func() {
			_, err := other.Join(t.Context(), "b", nil)
			must(t, err)
			must(t, a.Leave())
		})})
		if all, err := g.Members(t.Context()); err != nil || roll(all) != "b= " {
			t.Errorf("members %v, error %v; want b", all, err)
		}
	})
}
