package zksync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// MoveTo to a queue that cannot be used gives the message back.
func TestMoveToAnUnusableQueueGivesBack(t *testing.T) {
	for name, target := range map[string]struct {
		open func(t *testing.T, srv *zksynctest.Server, m *session.Manager) *zksync.Queue
		want error
	}{
		"closed": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager) *zksync.Queue {
			q := zksync.NewQueue(m, "/dead", zksync.WithCapacity(1))
			closeQueue(t, q)
			return q
		}, zksync.ErrQueueClosed},
		"invalid": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager) *zksync.Queue {
			return zksync.NewQueue(m, "dead")
		}, zk.ErrInvalidPath},
		"nil": {func(*testing.T, *zksynctest.Server, *session.Manager) *zksync.Queue { return nil }, zksync.ErrInvalidOption},
		"of another Manager": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager) *zksync.Queue {
			return zksync.NewQueue(srv.Connect(t), "/dead")
		}, zksync.ErrInvalidOption},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
				defer closeQueue(t, q)
				offer(t, srv.Connect(t), queuePath, 0, 1)
				msg := next(t, q.Messages(), "0")
				dead := target.open(t, srv, m)
				if dead != nil {
					defer closeQueue(t, dead)
				}
				if err := msg.MoveTo(t.Context(), dead); !errors.Is(err, target.want) {
					t.Errorf("MoveTo: %v, want %v", err, target.want)
				}
				if again := next(t, q.Messages(), "0"); again.Attempts != 2 {
					t.Errorf("attempt %d, want 2", again.Attempts)
				}
				// A message in no queue is given back, too.
				var verbs []string
				unused := zksync.NewMessage("id", nil, func(_ context.Context, verb string) error {
					verbs = append(verbs, verb)
					return nil
				})
				if name == "of another Manager" {
					return // a message in no queue has no Manager
				}
				if err := unused.MoveTo(t.Context(), dead); !errors.Is(err, target.want) {
					t.Errorf("MoveTo of a message in no queue: %v, want %v", err, target.want)
				}
				want(t, verbs, []string{"Nack"})
			})
		})
	}
}

// The wait of a MoveTo ends, and the message is given back, when the target is closed
// (delivery_remove.go: the context waits).
func TestMoveToWhoseTargetIsClosed(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, srv *zksynctest.Server, dead *zksync.Queue){
		"without room":          func(*testing.T, *zksynctest.Server, *zksync.Queue) {},
		"with a spent counter":  spend,
		"behind another MoveTo": func(*testing.T, *zksynctest.Server, *zksync.Queue) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				defer closeQueue(t, q)
				offer(t, srv.Connect(t), queuePath, 0, 2)
				var opts []zksync.QueueOption
				if name != "with a spent counter" {
					opts = append(opts, zksync.WithCapacity(1))
				}
				dead := zksync.NewQueue(m, "/dead", opts...)
				put(t, dead, "x")
				fill(t, srv, dead)
				moved := []<-chan error{}
				for _, data := range numbers(0, 2) {
					msg := next(t, q.Messages(), data)
					if data == "0" || name == "behind another MoveTo" {
						moved = append(moved, background(t.Context(), func(ctx context.Context) error { return msg.MoveTo(ctx, dead) }))
					} else {
						ack(t, msg)
					}
				}
				began := time.Now()
				closeQueue(t, dead)
				for _, done := range moved {
					if err := <-done; !errors.Is(err, zksync.ErrQueueClosed) || errors.Is(err, context.Canceled) || errors.Is(err, zksync.ErrLost) {
						t.Error("MoveTo:", err)
					}
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("MoveTo ended %v after the Close of its target", took)
				}
				for range moved {
					msg := <-q.Messages()
					if msg.Attempts != 2 {
						t.Errorf("attempt %d of %q, want 2", msg.Attempts, msg.Data)
					}
					ack(t, msg)
				}
			})
		})
	}
}

// The wait of a MoveTo ends with ErrLost when another client has deleted the ledger, and the message comes again
// (delivery_remove.go: the context waits).
func TestMoveToWhoseLedgerIsDeleted(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, srv *zksynctest.Server, dead *zksync.Queue){
		"without room":         func(*testing.T, *zksynctest.Server, *zksync.Queue) {},
		"with a spent counter": spend,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				const n = 2 // with a limit, the second MoveTo waits behind the first one
				q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(n))
				defer closeQueue(t, q)
				offer(t, srv.Connect(t), queuePath, 0, n)
				var opts []zksync.QueueOption
				if name == "without room" {
					opts = append(opts, zksync.WithCapacity(1))
				}
				dead := zksync.NewQueue(m, "/dead", opts...)
				defer closeQueue(t, dead)
				put(t, dead, "x")
				fill(t, srv, dead)
				var moved []<-chan error
				for _, data := range numbers(0, n) {
					msg := next(t, q.Messages(), data)
					moved = append(moved, background(t.Context(), func(ctx context.Context) error { return msg.MoveTo(ctx, dead) }))
				}
				removeLedgers(srv)
				for _, done := range moved {
					select {
					case err := <-done:
						if !errors.Is(err, zksync.ErrLost) {
							t.Errorf("MoveTo: %v, want ErrLost", err)
						}
					case <-time.After(time.Hour):
						t.Fatal("MoveTo waits an hour after its ledger was deleted")
					}
				}
				again := make(map[string]bool)
				for range n {
					msg := <-q.Messages()
					again[string(msg.Data)] = true
					ack(t, msg)
				}
				if len(again) != n {
					t.Errorf("%v came again, want all messages", again)
				}
			})
		})
	}
}

// spend spends the counter of the directory /dead.
func spend(t *testing.T, srv *zksynctest.Server, dead *zksync.Queue) {
	t.Helper()
	must(t, srv.SetNextSequence("/dead", 2147483647))
	put(t, dead, "y")
}

// MoveTo to the end of its own full queue takes no room, and does not wait for it. A message that has come from Retry
// waits for room (Delivery.MoveTo: NumberOf).
func TestMoveToOwnFullQueue(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(2))
		defer closeQueue(t, q)
		put(t, q, "0", "1")
		first, second := next(t, q.Messages(), "0"), next(t, q.Messages(), "1")
		limited, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		must(t, first.MoveTo(limited, q))
		wantMessages(t, srv, "1", "0")
		first = next(t, q.Messages(), "0")
		must(t, second.Retry(t.Context(), 0))
		put(t, q, "2")
		second = next(t, q.Messages(), "1")
		done := background(t.Context(), func(ctx context.Context) error { return second.MoveTo(ctx, q) })
		pending(t, "MoveTo into a full queue", done)
		wantMessages(t, srv, "0", "2")
		ack(t, first)
		must(t, <-done)
		wantMessages(t, srv, "2", "1")
	})
}

// A message that has come from Retry is given back by MoveTo to its own queue if the counter of the queue is spent:
// the counter would wait for the message itself.
func TestMoveToOwnSpentQueueAfterRetry(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		must(t, next(t, q.Messages(), "0").Retry(t.Context(), 0))
		msg := next(t, q.Messages(), "0")
		srv.SetNextSequence(queuePath, 2147483647)
		put(t, q, "1")
		other := next(t, q.Messages(), "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		moved := background(ctx, func(ctx context.Context) error { return msg.MoveTo(ctx, q) })
		ack(t, other)
		if err := <-moved; !errors.Is(err, zk.ErrNodeExists) {
			t.Error("MoveTo of a message to its own queue:", err)
		}
		ack(t, next(t, q.Messages(), "0"))
	})
}

// Retry gives a message back if the counter of such messages is spent and another message has its new name. A number is
// free only when the directory is empty. The message itself is in there if it has come from Retry, and the consumer may
// have no room for the other messages.
func TestRetryToTheNameOfAnotherMessage(t *testing.T) {
	for _, again := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			q := newQueue(t, srv, zksync.WithPrefetch(2))
			offer(t, srv.Connect(t), queuePath, 0, 2)
			if again {
				for _, data := range numbers(0, 2) {
					must(t, next(t, q.Messages(), data).Retry(t.Context(), time.Second))
				}
			}
			first, second := next(t, q.Messages(), "0"), next(t, q.Messages(), "1")
			if !again {
				must(t, srv.Create(queuePath+"/zksync-later", nil))
			}
			must(t, srv.SetNextSequence(queuePath+"/zksync-later", 2147483647))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			must(t, first.Retry(ctx, time.Minute))
			err := second.Retry(ctx, time.Minute)
			if !errors.Is(err, zk.ErrNodeExists) || !strings.Contains(err.Error(), "choose another delay") {
				t.Errorf("come from Retry %v: Retry: %v, want ErrNodeExists and advice", again, err)
			}
			second = next(t, q.Messages(), "1")
			must(t, second.Retry(ctx, time.Second))
			ack(t, next(t, q.Messages(), "1"))
			ack(t, next(t, q.Messages(), "0"))
		})
	}
}

// A MoveTo or an Ack whose ctx ends states what it was waiting for: room in the target, or a server.
func TestSettlingStatesItsReason(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		link := srv.NewLink(t)
		m := link.Connect(t, session.WithTimeout(40*time.Second))
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		offer(t, srv.Connect(t), queuePath, 0, 2)
		dead := zksync.NewQueue(m, "/dead", zksync.WithCapacity(1))
		defer closeQueue(t, dead)
		put(t, dead, "x")
		msg := next(t, q.Messages(), "0")
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := msg.MoveTo(ctx, dead); err == nil || !strings.Contains(err.Error(), "waiting for room") {
				t.Errorf("MoveTo: %v, want that it waits for room", err)
			}
			cancel()
		}
		msg = next(t, q.Messages(), "1")
		link.Cut()
		// Longer than the silence after which the connection is closed, and shorter than the lease.
		ctx, cancel := context.WithTimeout(t.Context(), live(t, m).Timeout()*27/100)
		defer cancel()
		if err := msg.Ack(ctx); session.WaitReason(err) == nil {
			t.Errorf("Ack: %v, want a reason", err)
		}
		link.Heal()
	})
}

// A MoveTo to a queue whose path is the message itself or below it, or the directory of the message whose counter is spent, gives the
// message back instead of waiting for ever.
func TestMoveToTheOwnZnodes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewPriorityQueue(m, queuePath)
		defer closeQueue(t, q)
		must(t, q.Put(t.Context(), []byte("0"), 7))
		for _, target := range []struct {
			path string
			want error
		}{
			{queuePath + "/p-007/qn-0000000000", zksync.ErrInvalidOption},
			{queuePath + "/p-007/qn-0000000000/below", zksync.ErrInvalidOption},
			{queuePath + "/p-007", zk.ErrNodeExists},
		} {
			must(t, srv.SetNextSequence(queuePath+"/p-007", 2147483647))
			if target.want == zk.ErrNodeExists {
				must(t, srv.Create(queuePath+"/p-007/qn-2147483647", []byte("1")))
			}
			to := zksync.NewQueue(m, target.path)
			msg := next(t, q.Messages(), "0")
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if err := msg.MoveTo(ctx, to); !errors.Is(err, target.want) {
				t.Errorf("MoveTo %s: %v, want %v", target.path, err, target.want)
			}
			cancel()
			closeQueue(t, to)
		}
		if _, exists := srv.Get(queuePath + "/p-007/qn-0000000000"); !exists {
			t.Error("the message is gone")
		}
	})
}
