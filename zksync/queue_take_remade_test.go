package zksync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Take never takes a message of a new directory by the name of an old one. Between the two requests of a Take the
// queue empties, the servers delete its directory, and another directory is created whose messages have the same names.
func TestTakeFromAQueueThatIsMadeAnew(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("first ", first), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m, other := srv.Connect(t), srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				offer(t, other, queuePath, 0, 3)
				from := 0
				if !first {
					takes(t, q, "0")
					from = 1
				}
				items, _ := leftItems(srv, queuePath)
				srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetData, Path: queuePath + "/" + items[0], At: zksynctest.BeforeReply, Do: zksynctest.Call(func() {
					removeTree(srv, queuePath)
					offer(t, other, queuePath, 10, 10+len(items)+from)
					if err := live(t, other).MakeDir(t.Context(), queuePath+"/zksync-claims"); err != nil {
						t.Error(err)
					}
				})})
				// Those come first whose names it has listed.
				var got []string
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					data, err := q.Take(ctx)
					cancel()
					if err != nil {
						t.Error("Take:", err)
					}
					got = append(got, string(data))
				}
				slices.Sort(got)
				want(t, got, numbers(10, 13))
				closeQueue(t, q)
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}

// Take creates the directory of claims again if it was deleted.
func TestTakeWithoutTheDirectoryOfClaims(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 2)
		takes(t, q, "0")
		removeTree(srv, queuePath+"/zksync-claims")
		srv.ResetOps()
		takes(t, q, "1")
		// One of the requests lists the queue again: without the former claim table, the
		// messages that other consumers had claimed must be known.
		if ops := requests(srv); len(ops) > 11 {
			t.Errorf("%d requests", len(ops))
		}
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// A server throttles the removal of a Take. Meanwhile another client takes the message, and its directory is deleted
// and created again, with new messages of the same names. Each message is taken once (sender.transact: MultiOnce).
func TestThrottledTakeOfAMessageWhoseDirectoryWasRemade(t *testing.T) {
	for _, kind := range []string{"PriorityQueue", "DelayQueue"} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				producer, q := remadeQueues[kind](t, srv, srv.Connect(t)), remadeQueues[kind](t, srv, m)
				defer closeQueue(t, producer)
				defer closeQueue(t, q)
				producer.put("first")
				data, err := q.Take(t.Context())
				must(t, err)
				got := []string{string(data)}
				producer.put("old")
				srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, Times: 5, Do: zksynctest.Throttle})
				taken := takeIn(t, q, time.Hour)
				data, _, err = producer.TryTake(t.Context())
				must(t, err)
				got = append(got, string(data))
				deleteDirectories(t, srv)
				producer.put("new0")
				producer.put("new1")
				got = append(got, <-taken)
				data, _, err = producer.TryTake(t.Context())
				must(t, err)
				want(t, append(got, string(data)), []string{"first", "old", "new0", "new1"})
			})
		})
	}
}
