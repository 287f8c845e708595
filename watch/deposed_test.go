package watch_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A mirror that has shown a deletion does not show the znode again at a leader that was deposed before the deletion. An event names
// no zxid, so the server that the client comes to next cannot tell that the client has seen more. It does not matter that the
// leader refuses the first request of the connection once, since it is overloaded.
func TestNoOlderStateAfterADeletionAtADeposedLeader(t *testing.T) {
	t.Run("idle", func(t *testing.T) { deletionAtADeposedLeader(t, false) })
	t.Run("overloaded", func(t *testing.T) { deletionAtADeposedLeader(t, true) })
}

func deletionAtADeposedLeader(t *testing.T, overloaded bool) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		for _, path := range []string{"/r", "/r/a"} {
			must(t, e.Create(path, nil))
		}
		old := e.Leader()
		server := e.Followers()[0]
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return e.Endpoint(server).Dial(ctx, network, address)
		}
		m, err := session.Connect(t.Context(), "10.0.0.1", session.WithDialer(dial), session.WithTimeout(10*time.Second))
		must(t, err)
		defer m.Close()
		c := watch.Tree(context.Background(), m, "/r") // ends with m
		must(t, c.WaitSynced(t.Context()))

		e.Depose()
		// The client comes back to its server, and learns of no transaction of the next leader.
		time.Sleep(time.Second)
		// The event of the deletion arrives, and the answer to the next read does not.
		e.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Do: zksynctest.Call(func() { server = old })})
		e.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Do: zksynctest.Disconnect})
		if overloaded {
			const throttled = -127
			e.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zkserver.BeforeCommit, Do: zksynctest.Error(throttled)})
		}
		must(t, e.Delete("/r/a"))
		synctest.Wait()
		if _, shown := c.Get("/r/a"); shown || server != old {
			t.Fatalf("shown: %v, next server: %d", shown, server)
		}
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			if _, shown := c.Get("/r/a"); shown {
				t.Fatal("the mirror shows the znode again")
			}
		}
	})
}
