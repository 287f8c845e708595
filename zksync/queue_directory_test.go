package zksync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// deleteDirectories deletes the empty directories of the messages of a PriorityQueue or a DelayQueue, as servers delete
// the containers that other versions have created.
func deleteDirectories(t *testing.T, srv *zksynctest.Server) {
	t.Helper()
	n := 0
	names, _ := srv.Children(queuePath)
	for _, name := range names {
		if strings.HasPrefix(name, "p-") || strings.HasPrefix(name, "t-") {
			must(t, srv.Delete(queuePath+"/"+name))
			n++
		}
	}
	if n == 0 {
		t.Fatal("there is no directory")
	}
}

// A Take takes each message once, also if another consumer deletes the directory of a span during its removal, and a Put
// that is late creates the directory again, with the same names.
func TestTakeBesideTheDeletionOfASpan(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		due := time.Now().Add(time.Second)
		link, m := srv.NewLink(t), srv.Connect(t)
		producer, late := zksync.NewDelayQueue(srv.Connect(t), queuePath), zksync.NewDelayQueue(link.Connect(t), queuePath)
		slow, other := zksync.NewDelayQueue(m, queuePath), zksync.NewDelayQueue(srv.Connect(t), queuePath)
		for _, q := range []*zksync.DelayQueue{producer, late, slow, other} {
			defer closeQueue(t, q)
		}
		for _, data := range []string{"first", "0", "1"} {
			must(t, producer.PutAt(t.Context(), []byte(data), due))
		}
		link.Cut()
		puts := make(chan error, 3)
		for _, data := range []string{"2", "3", "4"} {
			go func() { puts <- late.PutAt(context.Background(), []byte(data), due) }()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		taken := make(map[string]int)
		take := func(q *zksync.DelayQueue) bool {
			data, ok, err := q.TryTake(t.Context())
			must(t, err)
			if ok {
				taken[string(data)]++
			}
			return ok
		}
		take(slow) // its marker exists from now on
		take(other)
		time.Sleep(2 * time.Minute) // the span is over
		held := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, Do: zksynctest.Call(func() {
			for take(other) {
			}
			if names, _ := srv.Children(queuePath); strings.Contains(strings.Join(names, " "), "t-") {
				t.Errorf("the directory of the span is among %v", names)
			}
			link.Heal()
			for range 3 {
				must(t, <-puts)
			}
		})})
		take(slow)
		if held.Count() != 1 {
			t.Error("no removal was held up")
		}
		for take(other) {
		}
		for _, data := range []string{"first", "0", "1", "2", "3", "4"} {
			if taken[data] != 1 {
				t.Errorf("message %q was taken %d times, want once", data, taken[data])
			}
		}
	})
}

// Servers do not delete the directories of messages while they are empty: only a transaction that writes the order znode
// may do so.
func TestServersKeepTheDirectoriesOfMessages(t *testing.T) {
	for _, kind := range []string{"PriorityQueue", "DelayQueue"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			q := remadeQueues[kind](t, srv, m)
			defer closeQueue(t, q)
			q.put("0")
			before, _ := srv.Children(queuePath)
			_, err := q.Take(t.Context())
			must(t, err)
			srv.ReapNow()
			after, _ := srv.Children(queuePath)
			for _, name := range before {
				if !strings.HasPrefix(name, "zksync-") && !strings.Contains(strings.Join(after, " "), name) {
					t.Errorf("%s: %s is gone, %v are left", kind, name, after)
				}
			}
		})
	}
}

// A value has no more messages claimed and not settled than WithPrefetch says, also while the target of a MoveTo or the
// directory of Retry is missing.
func TestPrefetchWhileATargetIsMissing(t *testing.T) {
	for verb, dir := range map[string]string{"Retry": queuePath + "/zksync-later", "MoveTo": "/dead/letters"} {
		t.Run(verb, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 3)
				m := srv.Connect(t)
				q, dead := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1)), zksync.NewQueue(m, "/dead/letters")
				defer closeQueue(t, dead)
				defer closeQueue(t, q)
				msg := next(t, q.Messages(), "0")
				creates := func(op zkserver.Op) bool {
					return op.Code == zkserver.OpCreate || op.Code == zkserver.OpCreateContainer || op.Code == zkserver.OpCreate2
				}
				slow := srv.Inject(zksynctest.Fault{Path: dir, Match: creates, Do: zksynctest.Delay(3 * time.Second)})
				settled := started(t.Context(), func(ctx context.Context) error {
					if verb == "Retry" {
						return msg.Retry(ctx, time.Hour)
					}
					return msg.MoveTo(ctx, dead)
				})
				time.Sleep(2 * time.Second)
				if _, claims := leftItems(srv, queuePath); len(claims) > 1 || slow.Count() == 0 {
					t.Errorf("%v are claimed, and %d creations are slow; want 1 at most, and 1", claims, slow.Count())
				}
				mustEnd(t, verb, settled, nil)
			})
		})
	}
}
