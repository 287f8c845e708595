package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A server of 3.8 tells every client that a znode exists, but sends no event to a client without the permission to read the
// znode. A call that waits for the end of such a znode looks again.
func TestWaitsForAZnodeThatMayNotBeRead(t *testing.T) {
	waits := map[string]func(ctx context.Context, m *session.Manager) error{
		"Barrier.Wait": func(ctx context.Context, m *session.Manager) error { return zksync.NewBarrier(m, path).Wait(ctx) },
		"Campaign": func(ctx context.Context, m *session.Manager) error {
			_, err := zksync.NewElection(m, path, zksync.WithLayout(zksync.LayoutEphemeral)).Campaign(ctx)
			return err
		},
		"Ephemeral": func(ctx context.Context, m *session.Manager) error {
			e, err := m.Ephemeral(ctx, path, nil)
			if err != nil {
				return err
			}
			for st := range e.Status() {
				if st == session.Present {
					return nil
				}
			}
			return e.Err()
		},
		"Join": func(ctx context.Context, m *session.Manager) error {
			_, err := zksync.NewGroup(m, "/locks", zksync.WithIDWait()).Join(ctx, "m", nil)
			return err
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				owner := live(t, srv.Connect(t, session.WithAuth("digest", []byte("owner:secret"))))
				must(t, srv.Create("/locks", nil))
				_, err := owner.Create(t.Context(), path, nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll)...)
				must(t, err)
				m := srv.Connect(t)
				done := start(func() error { return wait(t.Context(), m) })
				<-time.After(time.Minute) // of the bubble
				pending(t, name, done)
				srv.ResetOps()
				<-time.After(time.Minute)
				if n := len(requests(srv)); n > 300 {
					t.Errorf("%d requests in a minute", n)
				}
				must(t, owner.Delete(t.Context(), path, -1))
				<-time.After(2 * time.Second)
				over(t, name, done)
			}, zksynctest.WithConfig(zkserver.Config{Compat38: true}))
		})
	}
}
