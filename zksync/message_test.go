package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// next receives one message, which must have the wanted data.
func next(t testing.TB, ch <-chan *zksync.Message, want string) *zksync.Message {
	t.Helper()
	select {
	case msg, ok := <-ch:
		if !ok {
			t.Fatal("the channel was closed")
		}
		if string(msg.Data) != want {
			t.Errorf("%q was delivered, want %q", msg.Data, want)
		}
		return msg
	case <-time.After(patience):
		t.Fatalf("no message, want %q", want)
	}
	return nil
}

func ack(t testing.TB, msg *zksync.Message) {
	t.Helper()
	if err := msg.Ack(t.Context()); err != nil {
		t.Error("Ack:", err)
	}
}

func nack(t testing.TB, msg *zksync.Message) {
	t.Helper()
	if err := msg.Nack(t.Context()); err != nil {
		t.Error("Nack:", err)
	}
}

// Messages delivers each message at least once, in its old position when its consumer dies or gives it back, and one
// Ack of it succeeds.
func TestMessages(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		offer(t, m, path, 0, 50)
		q := zksync.NewQueue(srv.Connect(t), path)
		ch := q.Messages()
		ids := make(map[string]bool)
		for i := range 50 {
			msg := next(t, ch, fmt.Sprint(i))
			ids[msg.ID] = true
			if i%10 == 3 {
				nack(t, msg)
				// The messages that were claimed already come first.
				continue
			}
			ack(t, msg)
			if i == 2 {
				break
			}
		}
		closeQueue(t, q)
		// The messages that were claimed and not received are back, in order.
		q = zksync.NewQueue(srv.Connect(t), path)
		ch = q.Messages()
		for i := 3; i < 50; i++ {
			ack(t, next(t, ch, fmt.Sprint(i)))
		}
		closeQueue(t, q)
		if _, ok := <-ch; ok {
			t.Error("a message from a closed queue")
		}
		emptyQueue(t, m, path)
	})
}

// A message that is given back comes next, to any consumer, with the same Message.ID.
func TestNack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 100)
		one := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		two := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		defer closeQueue(t, one)
		first := next(t, one.Messages(), "0")
		second := next(t, two.Messages(), "1")
		nack(t, first)
		// one has room again first, and so gets the message back.
		again := next(t, one.Messages(), "0")
		if again.ID != first.ID {
			t.Errorf("delivered again as %s, first as %s", again.ID, first.ID)
		}
		nack(t, second)
		closeQueue(t, two) // so that the message goes to another consumer
		ack(t, again)
		ack(t, next(t, one.Messages(), "1"))
		ack(t, next(t, one.Messages(), "2"))
	})
}

// A second Ack or Nack of a message is ErrSettled.
func TestMessageIsSettledOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 3)
		q := newQueue(t, srv)
		a := next(t, q.Messages(), "0")
		ack(t, a)
		for what, f := range map[string]func(context.Context) error{"Ack": a.Ack, "Nack": a.Nack} {
			if err := f(t.Context()); !errors.Is(err, zksync.ErrSettled) {
				t.Errorf("%s after Ack: %v", what, err)
			}
		}
		b := next(t, q.Messages(), "1")
		nack(t, b)
		for what, f := range map[string]func(context.Context) error{"Ack": b.Ack, "Nack": b.Nack} {
			if err := f(t.Context()); !errors.Is(err, zksync.ErrSettled) {
				t.Errorf("%s after Nack: %v", what, err)
			}
		}
		ack(t, next(t, q.Messages(), "2"))
		ack(t, next(t, q.Messages(), "1"))
		synctest.Wait()
		wantLeft(t, srv, 0, 0)
	})
}

// An Ack whose ctx ends continues in the background, and may be called again.
func TestAckInTheBackground(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		msg := next(t, q.Messages(), "0")
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(time.Second)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := msg.Ack(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("Ack:", err)
		}
		if err := msg.Nack(t.Context()); !errors.Is(err, zksync.ErrSettled) {
			t.Error("Nack during Ack:", err)
		}
		ack(t, msg)
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// Ack is ErrLost if the message had already gone back to the queue.
func TestAckOfTheLost(t *testing.T) {
	for name, lose := range map[string]struct {
		do   func(t *testing.T, srv *zksynctest.Server, m *session.Manager, q *zksync.Queue, msg *zksync.Message)
		left int
	}{
		"session expired": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager, _ *zksync.Queue, _ *zksync.Message) {
			srv.ExpireSession(live(t, m).ID())
			time.Sleep(time.Minute)
		}, 1},
		"session expires during the Ack": {func(t *testing.T, srv *zksynctest.Server, m *session.Manager, _ *zksync.Queue, _ *zksync.Message) {
			srv.Partition(live(t, m).ID())
		}, 1},
		"claim removed": {func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, _ *zksync.Queue, _ *zksync.Message) {
			removeLedgers(srv)
		}, 1},
		"message removed": {func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, _ *zksync.Queue, msg *zksync.Message) {
			srv.Delete(msg.ID)
		}, 0},
		"queue closed": {func(t *testing.T, _ *zksynctest.Server, _ *session.Manager, q *zksync.Queue, _ *zksync.Message) {
			closeQueue(t, q)
		}, 1},
		"Manager closed": {func(t *testing.T, _ *zksynctest.Server, m *session.Manager, _ *zksync.Queue, _ *zksync.Message) {
			m.Close()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 1)
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				msg := next(t, q.Messages(), "0")
				lose.do(t, srv, m, q, msg)
				for range 2 {
					if err := msg.Ack(t.Context()); !errors.Is(err, zksync.ErrLost) {
						t.Error("Ack:", err)
					}
				}
				closeQueue(t, q)
				other := zksync.NewQueue(srv.Connect(t), queuePath)
				if lose.left == 1 {
					ack(t, next(t, other.Messages(), "0"))
				}
				closeQueue(t, other)
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}

// Close gives back the messages that were received and not settled.
func TestCloseWithUnsettled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 10)
		q := newQueue(t, srv)
		other := newQueue(t, srv)
		for i := range 4 {
			msg := next(t, q.Messages(), fmt.Sprint(i))
			if i == 1 {
				ack(t, msg)
			}
		}
		closeQueue(t, q)
		wantLeft(t, srv, 9, 0)
		for _, i := range []int{0, 2, 3, 4, 5, 6, 7, 8, 9} {
			ack(t, next(t, other.Messages(), fmt.Sprint(i)))
		}
		synctest.Wait() // it may still be deleting the claims on messages that it has removed
		wantLeft(t, srv, 0, 0)
	})
}

// An Ack whose answer is lost happens once, and the message is not delivered again.
func TestAckOverLostAnswers(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for _, verb := range []string{"Ack", "Nack"} {
			t.Run(fmt.Sprint(verb, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					offer(t, srv.Connect(t), queuePath, 0, 1)
					m := srv.Connect(t)
					q := zksync.NewQueue(m, queuePath)
					msg := next(t, q.Messages(), "0")
					srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect})
					if verb == "Ack" {
						ack(t, msg)
						synctest.Wait()
						wantLeft(t, srv, 0, 0)
					} else {
						nack(t, msg)
						ack(t, next(t, q.Messages(), "0"))
					}
					closeQueue(t, q)
					wantLeft(t, srv, 0, 0)
				})
			})
		}
	}
}

// An Ack that has happened returns nil, also under a ctx that has ended (delivery.go: the
// second check of outcome in settle).
func TestAckThatHasHappenedSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		offer(t, srv.Connect(t), queuePath, 0, 20)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: removes, Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		q := newQueue(t, srv)
		for range 20 {
			msg := <-q.Messages()
			if err := msg.Ack(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal("the Ack that is under way:", err)
			}
			time.Sleep(time.Second)
			if err := msg.Ack(ctx); err != nil {
				t.Error("the Ack that has happened:", err)
			}
		}
	})
}

// A receiver that changes Message.Data does not change what Retry and MoveTo write.
func TestChangedDataIsNotWritten(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q, dead := zksync.NewQueue(m, queuePath), zksync.NewQueue(m, "/dead")
		defer closeQueue(t, q)
		defer closeQueue(t, dead)
		put(t, q, "first", "second")
		first, second := next(t, q.Messages(), "first"), next(t, q.Messages(), "second")
		first.Data[0], second.Data[0] = 'F', 'S'
		must(t, first.Retry(t.Context(), 0))
		must(t, second.MoveTo(t.Context(), dead))
		next(t, q.Messages(), "first")
		takes(t, dead, "second")
	})
}
