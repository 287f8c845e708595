package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Queue.Take and Group.Watch miss no change that happens while the connection is broken, also if the next connections
// break before the events of setWatches arrive. To see this test fail, pass seenZxid instead of eventZxid
// to rearm.
func TestNoChangeIsMissedOverBreaksInARow(t *testing.T) {
	calls := map[string]struct {
		wait   func(ctx context.Context, m *session.Manager) (string, error) // returns after the change
		change func(ctx context.Context, other *session.Manager) error
		want   string
	}{
		"Queue.Take": {
			func(ctx context.Context, m *session.Manager) (string, error) {
				q := zksync.NewQueue(m, path)
				defer q.Close()
				data, err := q.Take(ctx)
				return string(data), err
			},
			func(ctx context.Context, other *session.Manager) error {
				return zksync.NewQueue(other, path).Put(ctx, []byte("message"))
			},
			"message",
		},
		"Group.Watch": {
			func(ctx context.Context, m *session.Manager) (string, error) {
				for all, err := range zksync.NewGroup(m, path).Watch(ctx).All() {
					if err != nil || len(all) > 0 {
						return roll(all), err
					}
				}
				return "the stream has ended", nil
			},
			func(ctx context.Context, other *session.Manager) error {
				_, err := zksync.NewGroup(other, path).Join(ctx, "a", nil)
				return err
			},
			"a= ",
		},
	}
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			for lost := 1; lost <= 3; lost++ {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m, other := srv.Connect(t), srv.Connect(t)
					s := live(t, m)
					must(t, s.MakeDir(t.Context(), path))
					var got string
					waiting := start(func() (err error) {
						got, err = c.wait(t.Context(), m)
						return err
					})
					time.Sleep(time.Second)
					pending(t, "the call", waiting)
					injected := srv.Inject(zksynctest.Fault{Op: zkserver.OpSetWatches, At: zksynctest.BeforeCommit, Do: zksynctest.Disconnect, Times: lost})
					release := make(chan struct{})
					srv.Inject(zksynctest.Fault{Op: zkserver.OpConnect, Do: zksynctest.Hold(release)})
					srv.Disconnect(s.ID())
					synctest.Wait()
					must(t, c.change(t.Context(), other))
					close(release)
					time.Sleep(time.Minute)
					if n := injected.Count(); s.Err() != nil || n != lost {
						t.Fatalf("setWatches was lost %d times, want %d: %v", n, lost, s.Err())
					}
					synctest.Wait()
					select {
					case err := <-waiting:
						if err != nil || got != c.want {
							t.Errorf("setWatches was lost %d times: %q, %v; want %q", lost, got, err, c.want)
						}
					default:
						t.Errorf("setWatches was lost %d times, and the call waits although the change happened a minute ago", lost)
					}
				})
			}
		})
	}
}
