package zksync_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Chan delivers in order, deletes received messages, and returns the same channel at every call.
func TestChanDelivers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		q := zksync.NewQueue(srv.Connect(t), path)
		ch := q.Chan()
		if q.Chan() != ch {
			t.Error("Chan has returned another channel")
		}
		producer := srv.Connect(t)
		offer(t, producer, path, 0, 300)
		want(t, receive(t, ch, 300), numbers(0, 300))
		offer(t, producer, path, 300, 305)
		want(t, receive(t, ch, 5), numbers(300, 305))
		if err := q.Err(); err != nil {
			t.Error("Err while it delivers:", err)
		}
		closeQueue(t, q)
		if data, ok := <-ch; ok {
			t.Errorf("%q was received from a closed queue", data)
		}
		if err := q.Err(); !errors.Is(err, zksync.ErrQueueClosed) {
			t.Error("Err:", err)
		}
		m := srv.Connect(t)
		emptyQueue(t, m, path)
	})
}

// Messages that were not received when a value is closed are not lost, and come to the next consumer in order.
func TestChanCloseInTheMiddle(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		offer(t, m, path, 0, 100)
		first := zksync.NewQueue(srv.Connect(t), path)
		var got []string
		for data := range first.Chan() {
			if got = append(got, string(data)); len(got) == 30 {
				break
			}
		}
		want(t, got, numbers(0, 30))
		closeQueue(t, first)
		closeQueue(t, first)
		second := zksync.NewQueue(m, path)
		want(t, receive(t, second.Chan(), 70), numbers(30, 100))
		closeQueue(t, second)
		emptyQueue(t, m, path)
	})
}

// Messages that Close gives back come to a consumer that waits and has already passed them.
func TestChanCloseGivesToThoseWhoWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, m, queuePath, 0, 10)
		first := zksync.NewQueue(srv.Connect(t), queuePath)
		ch := first.Chan()
		synctest.Wait()
		wantLeft(t, srv, 10, 8)
		second := zksync.NewQueue(m, queuePath)
		next := second.Chan()
		want(t, receive(t, next, 2), numbers(8, 10))
		want(t, receive(t, ch, 3), numbers(0, 3))
		closeQueue(t, first)
		want(t, receive(t, next, 5), numbers(3, 8))
		closeQueue(t, second)
		wantLeft(t, srv, 0, 0)
	})
}

// The messages of a consumer that died come back in their old positions, ahead of the messages that another consumer
// has in memory.
func TestChanOfTheDead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1000)
		dying, die := mortalManager(t, srv)
		q := zksync.NewQueue(dying, queuePath)
		defer q.Close()
		want(t, receive(t, q.Chan(), 1), numbers(0, 1))
		synctest.Wait()
		wantLeft(t, srv, 999, 7)
		other := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(4))
		ch := other.Chan()
		want(t, receive(t, ch, 5), numbers(8, 13))
		die()
		time.Sleep(30 * time.Second)
		// At most those claimed ahead come before.
		got := receive(t, ch, 100)
		i := slices.Index(got, "1")
		if i < 0 || i > 5 {
			t.Fatalf("the first of the dead one's messages came as number %d: %v", i, got)
		}
		want(t, got[i:i+7], numbers(1, 8))
		want(t, slices.Concat(got[:i], got[i+7:]), numbers(13, 13+93))
		closeQueue(t, other)
	})
}

// Consumers share a short backlog: none of them claims more than twice its share.
func TestChanShares(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var chans []<-chan []byte
		for range 4 {
			q := zksync.NewQueue(srv.Connect(t), queuePath)
			defer q.Close()
			chans = append(chans, q.Chan())
		}
		synctest.Wait()
		offer(t, srv.Connect(t), queuePath, 0, 8)
		time.Sleep(time.Second)
		wantLeft(t, srv, 8, 8)
		var got []string
		for i, ch := range chans {
			n := 0
			for done := false; !done; {
				select {
				case data := <-ch:
					got = append(got, string(data))
					n++
				case <-time.After(time.Second):
					done = true
				}
			}
			if n > 4 {
				t.Errorf("consumer %d has %d of 8 messages, want at most twice its share", i, n)
			}
		}
		slices.Sort(got)
		want(t, got, numbers(0, 8))
	})
}

// A consumer of an empty queue asks the servers for nothing.
func TestChanIdle(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(srv.Connect(t), queuePath)
		defer q.Close()
		ch := q.Chan()
		offer(t, m, queuePath, 0, 10)
		receive(t, ch, 10)
		synctest.Wait()
		time.Sleep(2 * time.Minute) // the servers may remove empty containers
		srv.ResetOps()
		time.Sleep(time.Hour)
		if ops := requests(srv); len(ops) > 0 {
			t.Errorf("%d requests in an idle hour: %s", len(ops), names(ops))
		}
		proofs := 0
		for _, op := range srv.Ops() {
			if provesTheSession(op) {
				proofs++
			}
		}
		if proofs > 0 {
			t.Errorf("an idle consumer's session was proven alive %d times in an hour", proofs)
		}
		offer(t, m, queuePath, 10, 11)
		want(t, receive(t, ch, 1), numbers(10, 11))
	})
}

// A long backlog is listed once.
func TestChanListsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 5000
		offer(t, srv.Connect(t), queuePath, 0, n)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		srv.ResetOps()
		ch := q.Chan()
		receive(t, ch, n-300)
		ops := requests(srv, live(t, m).ID())
		listings := 0
		for _, op := range ops {
			if op.Path == queuePath && strings.HasPrefix(op.Code.String(), "getChildren") {
				listings++
			}
		}
		if listings != 1 {
			t.Errorf("%d listings for what one has shown", listings)
		}
		if len(ops) > n/8 {
			t.Errorf("%d requests for %d messages", len(ops), n)
		}
		receive(t, ch, 300)
	})
}

// Children of the directory that are no messages are ignored and stay.
func TestForeignChildren(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, m, queuePath, 0, 2)
		for _, name := range []string{"qn-", "qn-12", "qn-+000000003", "qn-00000000x1", "config", "zksync-limit", "a-qn-0000000009"} {
			if err := srv.Create(queuePath+"/"+name, []byte("foreign")); err != nil {
				t.Fatal(err)
			}
		}
		// As the recipe's clients, which number their znodes like everybody.
		for range 2 {
			if _, err := live(t, m).Create(t.Context(), queuePath+"/qn-", []byte("java"), 2); err != nil {
				t.Fatal(err)
			}
		}
		q := zksync.NewQueue(m, queuePath)
		want(t, receive(t, q.Chan(), 4), []string{"0", "1", "java", "java"})
		synctest.Wait()
		select {
		case data := <-q.Chan():
			t.Errorf("%q was delivered", data)
		default:
		}
		closeQueue(t, q)
		if data, ok, err := zksync.NewQueue(m, queuePath).TryTake(t.Context()); ok || err != nil {
			t.Errorf("TryTake: %q, %v, %v", data, ok, err)
		}
	})
}

// A value has Chan or Messages, and panics if asked for both.
func TestChanOrMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, c := range []struct{ first, then func(*zksync.Queue) }{
			{func(q *zksync.Queue) { q.Chan() }, func(q *zksync.Queue) { q.Messages() }},
			{func(q *zksync.Queue) { q.Messages() }, func(q *zksync.Queue) { q.Chan() }},
		} {
			q := zksync.NewQueue(m, queuePath)
			c.first(q)
			func() {
				defer func() {
					if recover() == nil {
						t.Error("a value was consumed in two ways")
					}
				}()
				c.then(q)
			}()
			closeQueue(t, q)
		}
	})
}

// The channel of Chan is closed if the path or an option is invalid or the queue is closed, and Err says why.
func TestChanThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, c := range []struct {
			q    *zksync.Queue
			want error
		}{
			{zksync.NewQueue(m, "q"), session.ErrInvalidPath},
			{zksync.NewQueue(m, queuePath, zksync.WithPrefetch(0)), zksync.ErrInvalidOption},
			{zksync.NewQueue(m, queuePath, zksync.WithPrefetch(100_001)), zksync.ErrInvalidOption},
		} {
			if _, ok := <-c.q.Chan(); ok {
				t.Error("a message from a queue that cannot be")
			}
			if err := c.q.Err(); !errors.Is(err, c.want) {
				t.Errorf("Err: %v, want %v", err, c.want)
			}
			if _, err := c.q.Take(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("Take: %v, want %v", err, c.want)
			}
			closeQueue(t, c.q)
		}
		q := zksync.NewQueue(m, queuePath)
		closeQueue(t, q)
		if _, ok := <-q.Messages(); ok {
			t.Error("a message from a closed queue")
		}
		if err := q.Err(); !errors.Is(err, zksync.ErrQueueClosed) {
			t.Error("Err:", err)
		}
	})
}

// The channel of Chan is closed when the Manager is closed, Err returns ErrClosed, and no message that was not received
// is lost.
func TestChanEndsWithTheManager(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, m, queuePath, 0, 10)
		q := zksync.NewQueue(m, queuePath)
		ch := q.Chan()
		receive(t, ch, 2)
		synctest.Wait()
		m.Close()
		if _, ok := <-ch; ok {
			t.Error("a message after the end of the Manager")
		}
		if err := q.Err(); !errors.Is(err, zksync.ErrClosed) {
			t.Error("Err:", err)
		}
		closeQueue(t, q)
		other := zksync.NewQueue(srv.Connect(t), queuePath)
		want(t, receive(t, other.Chan(), 8), numbers(2, 10))
		closeQueue(t, other)
	})
}
