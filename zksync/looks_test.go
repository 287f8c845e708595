package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// lookers are what only looks, and asks about what is at a path.
func lookers(m *session.Manager, path string) map[string]func(context.Context) error {
	e, g := zksync.NewElection(m, path), zksync.NewGroup(m, path)
	return map[string]func(context.Context) error{
		"Election.Leader":     func(ctx context.Context) error { _, err := e.Leader(ctx); return err },
		"Election.Candidates": func(ctx context.Context) error { _, err := e.Candidates(ctx); return err },
		"Group.Members":       func(ctx context.Context) error { _, err := g.Members(ctx); return err },
	}
}

// Looking is repeated over lost connections and sessions until ctx ends.
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

// What tells changes ends with its Manager, and where there is nothing to tell.
func TestObserversEnd(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		m := srv.Connect(t, session.WithLogger(zap.New(core)))
		_, err := live(t, m).Create(t.Context(), "/secret", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
		must(t, err)
		for _, path := range []string{"nowhere", "/secret"} {
			if c, ok := <-zksync.NewElection(m, path).Observe(t.Context()); ok {
				t.Errorf("%s: observed %+v", path, c)
			}
			if all, ok := <-zksync.NewGroup(m, path).Watch(t.Context()); ok {
				t.Errorf("%s: watched %+v", path, all)
			}
			said := logs.FilterMessageSnippet("cannot be observed").All()
			logs.TakeAll()
			if len(said) != 1 || said[0].ContextMap()["path"] != path {
				t.Errorf("%s: logged %v", path, said)
			}
		}
		leaders, members := zksync.NewElection(m, master).Observe(t.Context()), zksync.NewGroup(m, "/members").Watch(t.Context())
		<-leaders
		<-members
		must(t, m.Close())
		if c, ok := <-leaders; ok {
			t.Errorf("observed %+v of a Manager that is closed", c)
		}
		if all, ok := <-members; ok {
			t.Errorf("watched %+v of a Manager that is closed", all)
		}
	})
}

// The newest takes the place of what was not read, and is the receiver's to keep.
func TestObserversThatAreSlow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		g := zksync.NewGroup(m, "/members")
		seen := g.Watch(t.Context())
		leaders := zksync.NewElection(m, master).Observe(t.Context())
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
