package zksync_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The counter of the directory is spent. A message that is put after a removal whose answer is lost has the name of the
// removed message, and the same consumer gets it (queue: partition.leave).
func TestMessageBehindALostRemovalAtASpentCounter(t *testing.T) {
	for _, how := range []string{"Messages", "Chan"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer := newQueue(t, srv)
				put(t, producer, "0")
				// The consumer lists again before it knows the outcome of the removal.
				m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					time.Sleep(50 * time.Millisecond)
					return srv.Dial(ctx, network, address)
				}))
				q := zksync.NewQueue(m, queuePath)
				defer closeQueue(t, q)
				takes(t, q, "0")
				must(t, srv.SetNextSequence(queuePath, 2147483647))
				srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
				put(t, producer, "a")
				receiveNext := func(want string) {
					if how == "Chan" {
						if data := comesIn(t, q.Chan(), time.Hour); string(data) != want {
							t.Errorf("received %q, want %q", data, want)
						}
						return
					}
					msg := comesIn(t, q.Messages(), time.Hour)
					if msg == nil || string(msg.Data) != want {
						t.Fatalf("received %v, want %q", msg, want)
					}
					go msg.Ack(t.Context())
				}
				receiveNext("a")
				synctest.Wait()
				put(t, producer, "b")
				receiveNext("b")
			})
		})
	}
}
