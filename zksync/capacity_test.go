package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// takeFirst removes the first message, as any client may.
func takeFirst(t testing.TB, srv *zksynctest.Server) {
	t.Helper()
	names, _ := srv.Children(queuePath)
	slices.Sort(names)
	for _, name := range names {
		if name[:3] == "qn-" {
			if err := srv.Delete(queuePath + "/" + name); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("there is nothing to take")
}

// With WithCapacity, Put waits until the queue has room.
func TestPutWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithCapacity(3))
		want := numbered("m", 8)
		put(t, q, want[:3]...)
		waiting := make(chan error, 1)
		go func() {
			var msgs [][]byte
			for _, m := range want[3:] {
				msgs = append(msgs, []byte(m))
			}
			waiting <- q.PutAll(t.Context(), msgs...)
		}()
		for i := range 5 {
			pending(t, "Put into a full queue", waiting)
			wantMessages(t, srv, want[i:i+3]...)
			srv.ResetOps()
			time.Sleep(time.Hour)
			if ops := requests(srv); len(ops) != 0 {
				t.Errorf("while it waits it asks for %v", names(ops))
			}
			// A child that is no message makes no room and takes none.
			if err := srv.Create(fmt.Sprintf("%s/other%d", queuePath, i), nil); err != nil {
				t.Error(err)
			}
			pending(t, "Put into a full queue", waiting)
			takeFirst(t, srv)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
		wantMessages(t, srv, want[5:]...)
	})
}

// Among producers with WithCapacity(n) the queue never has more than n messages. Producers with faults put while a
// consumer takes messages out.
func TestCapacityIsNeverExceeded(t *testing.T) {
	const producers, goroutines, each, room = 3, 5, 20, 7
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var wg sync.WaitGroup
		var ids []int64
		for p := range producers {
			m := srv.Connect(t)
			ids = append(ids, live(t, m).ID())
			q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(room))
			defer q.Close()
			for g := range goroutines {
				wg.Go(func() { put(t, q, numbered(fmt.Sprintf("%d%d-", p, g), each)...) })
			}
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: 5, Times: 1, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: 9, Times: 3, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: 20, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() { srv.ExpireSession(ids[1]) })})
		var taken []string
		most := 0
		for len(taken) < producers*goroutines*each {
			time.Sleep(time.Second)
			synctest.Wait()
			now := inQueue(srv, queuePath)
			most = max(most, len(now))
			n := min(len(now), 1+len(taken)%room)
			for range n {
				takeFirst(t, srv)
			}
			taken = append(taken, now[:n]...)
		}
		wg.Wait()
		if most != room {
			t.Errorf("there were %d messages at most, where there is room for %d", most, room)
		}
		slices.Sort(taken)
		if n := len(slices.Compact(taken)); n != producers*goroutines*each {
			t.Errorf("%d different messages came through, want %d", n, producers*goroutines*each)
		}
	})
}

// The wait of a Put for room ends with its ctx, with WithMaxWait and with Close, and outlives a lost session.
func TestWaitingForRoomEnds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(1), zksync.WithMaxWait(time.Minute))
		put(t, q, "first")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Put(ctx, []byte("given up")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("Put: %v", err)
		}
		start := time.Now()
		err := q.Put(t.Context(), []byte("too long"))
		if took := time.Since(start); took != time.Minute || !errors.Is(err, zksync.ErrMaxWait) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("after %v Put returned %v", took, err)
		}
		err = q.PutAll(t.Context(), nil, nil)
		var all *zksync.PutAllError
		if !errors.Is(err, zksync.ErrMaxWait) || !errors.As(err, &all) || all.Put != 0 || all.All != 2 {
			t.Errorf("PutAll: %v", err)
		}
		// The value has stopped to wait for room. Otherwise it could count the messages after
		// takeFirst, and then use that count beside a producer without a limit.
		synctest.Wait()
		// WithMaxWait does not give up a Put that was sent.
		takeFirst(t, srv)
		onMulti(srv, zksynctest.AfterCommit, 1, zksynctest.Delay(2*time.Second))
		hasty := zksync.NewQueue(m, queuePath, zksync.WithMaxWait(time.Second))
		defer hasty.Close()
		if err := hasty.Put(t.Context(), []byte("slow")); err != nil {
			t.Errorf("Put with a slow answer: %v", err)
		}
		// The session ends meanwhile, and then the queue does.
		var over atomic.Bool
		waiting := make(chan error, 1)
		go func() {
			for {
				err := q.Put(t.Context(), []byte("late"))
				if !errors.Is(err, zksync.ErrMaxWait) || over.Load() {
					waiting <- err
					return
				}
			}
		}()
		pending(t, "Put", waiting)
		srv.ExpireSession(live(t, m).ID())
		time.Sleep(10 * time.Second)
		pending(t, "Put", waiting)
		over.Store(true)
		q.Close()
		if err := <-waiting; !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("after Close: %v", err)
		}
		wantMessages(t, srv, "slow")
	})
}

// A producer with a capacity counts the messages once.
func TestRoomIsNotCountedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithCapacity(100))
		put(t, q, "first")
		srv.ResetOps()
		put(t, q, numbered("m", 50)...)
		for _, op := range requests(srv) {
			if op.Code != zkserver.OpMulti {
				t.Errorf("asked for %v", op.Code)
			}
		}
	})
}

// A Put creates the znode for its limit again if another client deleted it.
func TestLimitIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithCapacity(100))
		put(t, q, "first")
		if err := srv.Delete(queuePath + "/zksync-limit"); err != nil {
			t.Fatal(err)
		}
		put(t, q, "second")
		wantMessages(t, srv, "first", "second")
	})
}

// WithCapacity of 0 is ErrInvalidOption, and a queue with an invalid path fails each call.
func TestCapacityMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		wantError(t, zksync.NewQueue(m, queuePath, zksync.WithCapacity(0)).Put(t.Context(), nil), zksync.ErrInvalidOption, "WithCapacity", "0")
		for _, path := range []string{"", "queue", "/a/", "/a//b"} {
			q := zksync.NewQueue(m, path)
			wantError(t, q.Put(t.Context(), nil), session.ErrInvalidPath)
			_, err := q.Len(t.Context())
			wantError(t, err, session.ErrInvalidPath)
			_, _, err = q.Peek(t.Context())
			wantError(t, err, session.ErrInvalidPath)
			q.Close()
		}
	})
}

// The error of a Put says that the queue is full only where it was found so by then
// (capacity.go: where admit begins).
func TestAPutForgetsThatTheQueueWasFull(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(1))
		defer closeQueue(t, q)
		must(t, q.Put(t.Context(), nil))
		put := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return q.Put(ctx, nil)
		}
		if err := put(); !strings.Contains(fmt.Sprint(err), "for room") {
			t.Error("Put:", err)
		}
		_, err := newQueue(t, srv).Take(t.Context())
		must(t, err)
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpExists, Do: zksynctest.Delay(2 * time.Second)})
		if err := put(); err == nil || strings.Contains(fmt.Sprint(err), "for room") {
			t.Errorf("Put: %v, want an error without the former reason", err)
		}
	})
}

// A Put does not exceed the capacity of a queue that another client has deleted, and that another value has created
// again and filled.
func TestCapacityOfAQueueThatWasRemade(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := newQueue(t, srv, zksync.WithCapacity(2)), newQueue(t, srv, zksync.WithCapacity(2))
		put(t, a, "a")
		removeTree(srv, queuePath)
		must(t, b.PutAll(t.Context(), []byte("b"), []byte("c")))
		done := background(t.Context(), func(ctx context.Context) error { return a.Put(ctx, []byte("d")) })
		pending(t, "Put", done)
		wantMessages(t, srv, "b", "c")
		takeFirst(t, srv)
		must(t, <-done)
		wantMessages(t, srv, "c", "d")
	})
}

// A MoveTo does not exceed the capacity of a queue that another client has deleted, and that another value has created
// again and filled by as many requests (commit/capacity.go: Unmarked).
func TestMoveToAQueueThatWasRemade(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		from, a := zksync.NewQueue(m, "/from"), zksync.NewQueue(m, queuePath, zksync.WithCapacity(10))
		defer closeQueue(t, from)
		defer closeQueue(t, a)
		put(t, from, "0", "1", "2")
		for _, data := range numbers(0, 2) {
			must(t, next(t, from.Messages(), data).MoveTo(t.Context(), a))
		}
		removeTree(srv, queuePath)
		b := newQueue(t, srv, zksync.WithCapacity(10))
		var all [][]byte
		for range 10 {
			all = append(all, nil)
		}
		must(t, b.PutAll(t.Context(), all...))
		if _, stat, err := live(t, m).Get(t.Context(), queuePath+"/zksync-limit"); err != nil || stat.Version != 2 {
			t.Fatalf("version %v of the limit, want 2: %v", stat, err)
		}
		msg := next(t, from.Messages(), "2")
		done := background(t.Context(), func(ctx context.Context) error { return msg.MoveTo(ctx, a) })
		pending(t, "MoveTo into a full queue", done)
		takeFirst(t, srv)
		must(t, <-done)
	})
}

// putWhileRefused starts a Put by q, whose first request the server refuses after delay, because another producer puts
// the last message for which a queue with WithCapacity(2) has room.
func putWhileRefused(t *testing.T, srv *zksynctest.Server, m *session.Manager, q *zksync.Queue, delay time.Duration) <-chan error {
	t.Helper()
	other := newQueue(t, srv, zksync.WithCapacity(2))
	put(t, other, "0")
	srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(delay)})
	done := background(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return q.Put(ctx, []byte("refused"))
	})
	put(t, other, "1")
	return done
}

// WithMaxWait bounds a Put whose request was refused after the limit: the Put does not wait for room
// (sender.markUnsent: withdrawn).
func TestMaxWaitAfterARefusal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(2), zksync.WithMaxWait(time.Second))
		defer closeQueue(t, q)
		began := time.Now()
		err := <-putWhileRefused(t, srv, m, q, 2*time.Second)
		if took := time.Since(began); took > 3*time.Second || !errors.Is(err, zksync.ErrMaxWait) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("Put after %v: %v", took, err)
		}
		wantMessages(t, srv, "0", "1")
	})
}

// WithMaxWait bounds a Put that is refused after the limit for want of a number (sender.entryRefused: hasOutcome).
func TestMaxWaitWithASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewPriorityQueue(m, queuePath, zksync.WithMaxWait(time.Second))
		defer closeQueue(t, q)
		must(t, q.Put(t.Context(), []byte("0"), 5))
		must(t, srv.SetNextSequence(queuePath+"/p-005", 2147483647))
		must(t, q.Put(t.Context(), []byte("1"), 5))
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(2 * time.Second)})
		began := time.Now()
		done := background(t.Context(), func(ctx context.Context) error { return q.Put(ctx, []byte("2"), 5) })
		time.Sleep(1500 * time.Millisecond)
		must(t, q.Put(t.Context(), []byte("3"), 6)) // it does not wait for the other priority
		err := <-done
		if took := time.Since(began); took > 3*time.Second || !errors.Is(err, zksync.ErrMaxWait) {
			t.Errorf("Put after %v: %v", took, err)
		}
	})
}

// Close does not wait for a Put whose request is refused after Close has begun, and the Put fails with ErrQueueClosed.
func TestCloseBesideARefusedPut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(2))
		done := putWhileRefused(t, srv, m, q, time.Second)
		began := time.Now()
		closeQueue(t, q)
		err := <-done
		if took := time.Since(began); took > 1500*time.Millisecond || !errors.Is(err, zksync.ErrQueueClosed) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("after %v Put returned %v", took, err)
		}
		wantMessages(t, srv, "0", "1")
	})
}

// slowProducers returns two queues with a limit, each with its own link, whose requests take a time.
func slowProducers(t *testing.T, srv *zksynctest.Server, request time.Duration) (a, b *zksync.Queue, from *session.Manager) {
	al, bl := srv.NewLink(t), srv.NewLink(t)
	am := al.Connect(t)
	a = zksync.NewQueue(am, queuePath, zksync.WithCapacity(1_000_000))
	b = zksync.NewQueue(bl.Connect(t), queuePath, zksync.WithCapacity(1_000_000))
	put(t, a, "first")
	put(t, b, "first")
	al.Delay(request / 2)
	bl.Delay(request / 2)
	return a, b, am
}

// A Put, and a MoveTo, into a queue with a limit and room end in time beside another producer that puts all the time.
func TestCapacityBesideABusyProducer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b, m := slowProducers(t, srv, 2*time.Millisecond)
		from := zksync.NewQueue(m, "/from")
		put(t, from, "0")
		msg := next(t, from.Messages(), "0")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				_ = b.Put(ctx, nil)
			}
		}()
		time.Sleep(time.Second)
		limited, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		must(t, a.Put(limited, nil))
		must(t, msg.MoveTo(limited, a))
		cancel()
		<-done
		for _, q := range []*zksync.Queue{from, a, b} {
			closeQueue(t, q)
		}
	})
}

// Many messages are moved into a queue with a limit by about one transaction each.
func TestManyMovesIntoAQueueWithALimit(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 100
		a, b, m := slowProducers(t, srv, 10*time.Millisecond)
		closeQueue(t, b)
		from := zksync.NewQueue(m, "/from")
		offer(t, srv.Connect(t), "/from", 0, n)
		var all []*zksync.Message
		for range n {
			all = append(all, <-from.Messages())
		}
		srv.ResetOps()
		done := make(chan error, n)
		for _, msg := range all {
			go func() { done <- msg.MoveTo(t.Context(), a) }()
		}
		for range n {
			must(t, <-done)
		}
		transactions := 0
		for _, op := range requests(srv) {
			if op.Code == zkserver.OpMulti {
				transactions++
			}
		}
		if transactions > 2*n {
			t.Errorf("%d transactions for %d messages", transactions, n)
		}
		closeQueue(t, from)
		closeQueue(t, a)
	})
}
