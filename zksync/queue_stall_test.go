package zksync_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// privateQueue returns a queue whose messages no other client may read. Another client
// has created its directories.
func privateQueue(t *testing.T, srv *zksynctest.Server) *zksync.Queue {
	t.Helper()
	public := newQueue(t, srv)
	must(t, public.Put(t.Context(), nil))
	_, err := public.Take(t.Context())
	must(t, err)
	return zksync.NewQueue(srv.Connect(t, session.WithAuth("digest", []byte("u:p")), session.WithACL(zk.AuthACL(zk.PermAll)...)), queuePath)
}

// A consumer whose claims turn out to be on messages that are gone or cannot be read
// delivers the next message, also if another consumer, which receives no more, has
// registered in the meantime.
func TestConsumerGoesOnBehindClaimsOnNothing(t *testing.T) {
	for _, what := range []string{"gone", "unreadable"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer := newQueue(t, srv)
				m := srv.Connect(t)
				id := live(t, m).ID()
				reads := func(op zkserver.Op) bool { return strings.Contains(op.Sub[0].Path, "/qn-") }
				srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMultiRead, Match: reads, Times: 5, Do: zksynctest.Error(throttled)})
				if what == "unreadable" {
					private := privateQueue(t, srv)
					defer closeQueue(t, private)
					must(t, private.PutAll(t.Context(), make([][]byte, 4)...))
				} else {
					must(t, producer.PutAll(t.Context(), make([][]byte, 4)...))
					claims := func(op zkserver.Op) bool {
						return len(op.Sub) > 1 && strings.Contains(op.Sub[0].Path, "zksync-claims/ledger-")
					}
					srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, Match: claims, Do: zksynctest.Call(func() {
						for _, path := range messagesIn(srv, queuePath) {
							must(t, srv.Delete(path))
						}
					})})
				}
				a := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(4)) // no room for other claims
				defer closeQueue(t, a)
				a.Messages()
				synctest.Wait() // a has claimed the four, and reads them
				b := newQueue(t, srv, zksync.WithPrefetch(1))
				b.Messages()
				synctest.Wait()
				must(t, producer.PutAll(t.Context(), []byte("x"), []byte("y")))
				x := next(t, b.Messages(), "x")
				select {
				case y := <-a.Messages():
					ack(t, y)
				case <-time.After(time.Hour):
					items, claims := leftItems(srv, queuePath)
					t.Errorf("no message in an hour; Err %v, left %v, claims %v", a.Err(), items, claims)
				}
				ack(t, x)
			})
		})
	}
}

// The error of a Take does not call a queue empty that has a message which is skipped.
func TestTakeNamesSkippedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		private := privateQueue(t, srv)
		defer closeQueue(t, private)
		must(t, private.Put(t.Context(), nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newQueue(t, srv).Take(ctx); !strings.Contains(fmt.Sprint(err), "1 that this consumer skips") {
			t.Error("Take:", err)
		}
	})
}
