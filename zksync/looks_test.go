package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// lookers are calls that only read, and read the znodes at a path.
func lookers(m *session.Manager, path string) map[string]func(context.Context) error {
	e, g := zksync.NewElection(m, path), zksync.NewGroup(m, path)
	return map[string]func(context.Context) error{
		"Election.Leader":     func(ctx context.Context) error { _, err := e.Leader(ctx); return err },
		"Election.Candidates": func(ctx context.Context) error { _, err := e.Candidates(ctx); return err },
		"Group.Members":       func(ctx context.Context) error { _, err := g.Members(ctx); return err },
	}
}

// Leader, Candidates and Members are repeated over lost connections and sessions until ctx ends.
func TestLooksAreRepeated(t *testing.T) {
	for name := range lookers(nil, "") {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				_, err := zksync.NewElection(srv.Connect(t), master).Campaign(t.Context())
				must(t, err)
				m := srv.Connect(t)
				look := lookers(m, master)[name]
				for nth := 1; nth <= 2; nth++ {
					id := live(t, m).ID()
					broken := srv.Inject(zksynctest.Fault{Session: id, Path: master + "*", Nth: nth, Times: 3, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
					must(t, look(t.Context()))
					broken.Remove()
					expired := srv.Inject(zksynctest.Fault{Session: id, Path: master + "*", Nth: nth, At: zksynctest.BeforeReply,
						Do: zksynctest.Call(func() { srv.ExpireSession(id) })})
					must(t, look(t.Context()))
					if broken.Count() == 0 || expired.Count() == 0 {
						t.Errorf("%d connections broke and %d sessions ended", broken.Count(), expired.Count())
					}
				}
				srv.Freeze()
				defer srv.Thaw()
				ctx, cancel := context.WithCancelCause(t.Context())
				looking := start(func() error { return look(ctx) })
				pending(t, name, looking)
				cancel(errEnough)
				mustEnd(t, name, looking, errEnough)
			})
		})
	}
}

// ends is how a stream of package zksync ended.
type ends struct {
	stream string
	err    error
}

// both reads the streams of an Election and a Group at path until they end.
func both(ctx context.Context, m *session.Manager, path string) []ends {
	leaders, members := zksync.NewElection(m, path).Observe(ctx), zksync.NewGroup(m, path).Watch(ctx)
	for range leaders.Events() {
	}
	for range members.Events() {
	}
	return []ends{{"election", leaders.Err()}, {"group", members.Err()}}
}

// Observe and Watch end with ctx, with the Manager and at a final refusal, and EndError tells which, for any error that
// the cause of ctx wraps.
func TestObserversEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		_, err := live(t, m).Create(t.Context(), "/secret", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
		must(t, err)
		check := func(name string, all []ends, path string, reason watch.EndReason, targets ...error) {
			t.Helper()
			for _, e := range all {
				var end *watch.EndError
				if !errors.As(e.err, &end) || end.Reason != reason || end.Path != path || end.Stream != e.stream {
					t.Errorf("%s: %s has ended with %+v, want %v of %s", name, e.stream, e.err, reason, path)
				}
				for _, target := range targets {
					if !errors.Is(e.err, target) {
						t.Errorf("%s: %s has ended with %v, want %v", name, e.stream, e.err, target)
					}
				}
			}
		}
		check("invalid", both(t.Context(), m, "nowhere"), "nowhere", watch.Refused, session.ErrInvalidPath)
		check("denied", both(t.Context(), m, "/secret"), "/secret", watch.Refused, zk.ErrNoAuth)
		for _, cause := range []error{errEnough, zksync.ErrLost, zksync.ErrClosed, zk.ErrNoAuth, zk.ErrNoNode} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			check("ctx", both(ctx, m, master), master, watch.ContextEnded, context.Canceled, cause)
		}
		e, g := zksync.NewElection(m, master).Observe(t.Context()), zksync.NewGroup(m, master).Watch(t.Context())
		for range e.All() {
			break
		}
		for range g.All() {
			break
		}
		check("left", []ends{{"election", e.Err()}, {"group", g.Err()}}, master, watch.Stopped, watch.ErrStopped)
		time.AfterFunc(time.Second, func() { m.Close() })
		check("closed", both(t.Context(), m, master), master, watch.ManagerClosed, session.ErrClosed)
	})
}

// A refusal that is not final ends neither Observe nor Watch.
func TestObserversOutliveTransientRefusals(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		leaders, members := zksync.NewElection(m, master).Observe(t.Context()), zksync.NewGroup(m, master).Watch(t.Context())
		<-leaders.Events()
		<-members.Events()
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: master + "*", Times: 20, Do: zksynctest.Error(-127)})
		_, err := zksync.NewElection(srv.Connect(t), master, zksync.WithID("a")).Campaign(t.Context())
		must(t, err)
		if c := <-leaders.Events(); c.ID != "a" {
			t.Errorf("leader %+v, %v", c, leaders.Err())
		}
		if all := <-members.Events(); len(all) != 1 {
			t.Errorf("members %+v, %v", all, members.Err())
		}
	})
}

// A slow reader of Observe or Watch gets the newest report, and the lists belong to the receiver.
func TestObserversThatAreSlow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		g := zksync.NewGroup(m, "/members")
		seen := g.Watch(t.Context()).Events()
		leaders := zksync.NewElection(m, master).Observe(t.Context()).Events()
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			_, err := g.Join(t.Context(), id, []byte(id))
			must(t, err)
			e := zksync.NewElection(m, master, zksync.WithID(id))
			_, err = e.Campaign(t.Context())
			must(t, err)
			synctest.Wait()
			if id != "c" {
				must(t, e.Resign())
			}
		}
		synctest.Wait()
		all := <-seen
		if roll(all) != "a=a b=b c=c " {
			t.Errorf("members %q", roll(all))
		}
		all[0].Data[0] = 'x'
		_, err := g.Join(t.Context(), "d", []byte("d"))
		must(t, err)
		if got := roll(<-seen); got != "a=a b=b c=c d=d " {
			t.Errorf("members %q, after the last list was changed", got)
		}
		if c := <-leaders; c.ID != "c" {
			t.Errorf("leader %+v", c)
		}
	})
}

// Members and Semaphore.Contenders return a state that existed, even if the znode that was listed is replaced by another
// one before it is read.
func TestListsAreStatesThatExisted(t *testing.T) {
	t.Run("Group.Members", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			g, other := zksync.NewGroup(m, "/g"), zksync.NewGroup(srv.Connect(t), "/g")
			a, err := other.Join(t.Context(), "a", nil)
			must(t, err)
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/g/a", Op: zkserver.OpGetData, Do: zksynctest.Call(func() {
				_, err := other.Join(t.Context(), "b", nil)
				must(t, err)
				must(t, a.Leave())
			})})
			if all, err := g.Members(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("members %v, %v; the group had a member at all times", all, err)
			}
		})
	})
	t.Run("Semaphore.Contenders", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			s, other := zksync.NewSemaphore(m, "/s", 2), zksync.NewSemaphore(srv.Connect(t), "/s", 2)
			must(t, other.Acquire(t.Context(), 1))
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/s/leases/*", Op: zkserver.OpGetData, Do: zksynctest.Call(func() {
				must(t, other.Acquire(t.Context(), 1))
				must(t, other.Release(1))
			})})
			if all, err := s.Contenders(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("contenders %v, %v; a unit was held at all times", all, err)
			}
		})
	})
}
