package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The directory of a message that was received is deleted and created again. Its Ack
// does not remove the new message of the same name, also if the watch on the directory
// has fired before, was never set, or the connection was lost at that time (partition.go:
// tracked; delivery.go: the check of mayBeRecreated).
func TestAckOfAMessageWhoseDirectoryIsNotWatched(t *testing.T) {
	for _, how := range []string{"control", "data", "offline", "cancelled"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
				defer closeQueue(t, producer)
				m := srv.Connect(t)
				q := zksync.NewPriorityQueue(m, queuePath, zksync.WithPrefetch(1))
				put := func(data string) {
					if err := producer.Put(t.Context(), []byte(data), 7); err != nil {
						t.Fatal(err)
					}
				}
				id := live(t, m).ID()
				put("old")
				if how == "cancelled" {
					ctx, cancel := context.WithCancel(t.Context())
					in := srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpExists, Path: queuePath + "/p-007", Do: zksynctest.Call(cancel)})
					if _, err := q.Take(ctx); err == nil || in.Count() != 1 {
						t.Fatalf("Take: %v, and %d watches were not laid, want 1", err, in.Count())
					}
				}
				old := next(t, q.Messages(), "old")
				synctest.Wait()
				switch how {
				case "data":
					srv.Set(queuePath+"/p-007", []byte("somebody's data"))
					synctest.Wait()
				case "offline":
					srv.Partition(id)
					srv.Disconnect(id)
				}
				removeTree(srv, queuePath+"/p-007")
				put("new")
				synctest.Wait()
				if how == "offline" {
					srv.Heal(id)
					time.Sleep(3 * time.Second)
				}
				if err := old.Ack(t.Context()); !errors.Is(err, zksync.ErrLost) {
					t.Errorf("Ack: %v, want ErrLost", err)
				}
				select {
				case msg := <-q.Messages():
					ack(t, msg)
				case <-time.After(time.Minute):
					t.Errorf("the new message was not delivered; left %v", messagesIn(srv, queuePath))
				}
				closeQueue(t, q)
			})
		})
	}
}

// The directory of a priority is deleted and created again while a consumer has messages
// of the former one in its list. Chan delivers each of the new messages once.
func TestChanInADirectoryThatWasRemade(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		q := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
		put := func(what string, n int) {
			for i := range n {
				if err := producer.Put(t.Context(), fmt.Append(nil, what, i), 7); err != nil {
					t.Fatal(err)
				}
			}
		}
		put("old", 40)
		receive(t, q.Chan(), 1)
		synctest.Wait()
		removeTree(srv, queuePath+"/p-007")
		put("new", 40)
		synctest.Wait()
		seen := make(map[string]int)
		for done := false; !done; {
			select {
			case data := <-q.Chan():
				seen[string(data)]++
			case <-time.After(time.Minute):
				done = true
			}
		}
		for i := range 40 {
			if n := seen[fmt.Sprint("new", i)]; n != 1 {
				t.Errorf("new%d was delivered %d times", i, n)
			}
		}
		closeQueue(t, q)
		if left := messagesIn(srv, queuePath); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
