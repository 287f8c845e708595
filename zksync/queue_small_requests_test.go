package zksync_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A queue works with a small WithMaxRequest and uses more requests.
func TestQueueWithSmallRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 400
		connect := func() *session.Manager { return srv.Connect(t, session.WithMaxRequest(1024)) }
		offer(t, connect(), queuePath, 0, n)
		m := connect()
		q, other := zksync.NewQueue(m, queuePath), zksync.NewQueue(connect(), queuePath)
		ch := q.Chan()
		got := receive(t, ch, 50)
		// The answer to a claim is lost, and then the session.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		got = append(got, receive(t, ch, 50)...)
		srv.ExpireSession(live(t, m).ID())
		got = append(got, receive(t, ch, 50)...)
		want(t, got, numbers(0, 150))
		// Messages of the lost session that were received and not removed yet would come to
		// the other consumer again, as Chan documents.
		eventually(t, "removal of the messages that were received", func() bool {
			left, _ := leftItems(srv, queuePath)
			return len(left) == n-len(got)
		})
		// From here on two consumers share the queue.
		others := other.Chan()
		synctest.Wait()
		for len(got) < n {
			select {
			case data := <-ch:
				got = append(got, string(data))
			case data := <-others:
				got = append(got, string(data))
			case <-time.After(patience):
				t.Fatalf("no message after %d of %d: %v, %v", len(got), n, q.Err(), other.Err())
			}
		}
		wantAll(t, got, n)
		if length, err := q.Len(t.Context()); err != nil {
			t.Error("Len:", length, err)
		}
		closeQueue(t, q)
		closeQueue(t, other)
		wantLeft(t, srv, 0, 0)
	})
}

// A queue works at the root and at a long path.
func TestQueueAtOddPaths(t *testing.T) {
	for _, path := range []string{"/", "/" + strings.Repeat("x", 200)} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t, session.WithMaxRequest(2048))
			q := zksync.NewQueue(m, path)
			var all [][]byte
			for i := range 100 {
				all = append(all, fmt.Append(nil, i))
			}
			if err := q.PutAll(t.Context(), all...); err != nil {
				t.Fatal(err)
			}
			takes(t, q, "0")
			want(t, receive(t, q.Chan(), 99), numbers(1, 100))
			closeQueue(t, q)
			if _, left := leftItems(srv, strings.TrimSuffix(path, "/")); len(left) > 0 {
				t.Errorf("claims are left: %v", left)
			}
		})
	}
}

// The names of the messages that a consumer gives back, every second one, do not fit into a request. Each Nack succeeds all
// the same, and each of these messages comes again, also when it is given back a second time.
func TestNacksThatDoNotFit(t *testing.T) {
	const n = 400
	queues := maps.Clone(threeQueues)
	queues["layout of kazoo"] = func(m *session.Manager, prefetch int) (commonQueue, func(context.Context, []byte) error) {
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(prefetch), zksync.WithLayout(zksync.LayoutKazoo))
		return q, q.Put
	}
	for name, open := range queues {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, put := open(srv.Connect(t), usualPrefetch)
				defer closeQueue(t, producer)
				for i := range n {
					must(t, put(t.Context(), fmt.Append(nil, i)))
					time.Sleep(7 * time.Millisecond) // no two delayed messages have consecutive names
				}
				q, _ := open(srv.Connect(t, session.WithMaxRequest(1024)), n)
				defer closeQueue(t, q)
				receipts := make(map[string]int)
				for left, held := n, []*zksync.Message(nil); left > 0; {
					select {
					case msg := <-q.Messages():
						receipts[string(msg.Data)]++
						held = append(held, msg)
						continue
					case <-time.After(time.Minute): // the claims have no room for the names of more messages
					}
					if len(held) == 0 {
						t.Fatalf("%d messages do not come", left)
					}
					for i, msg := range held {
						if i%2 == 0 || receipts[string(msg.Data)] > 2 {
							ack(t, msg)
							left--
						} else if err := msg.Nack(t.Context()); err != nil {
							t.Fatalf("Nack of message %s: %v", msg.Data, err)
						}
					}
					held = nil
				}
				if len(receipts) != n {
					t.Errorf("%d messages have come, want %d", len(receipts), n)
				}
			})
		})
	}
}
