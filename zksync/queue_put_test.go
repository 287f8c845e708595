package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const queuePath = "/queues/q"

// inQueue are the messages in a queue, in order.
func inQueue(srv *zksynctest.Server, dir string) []string {
	names, _ := srv.Children(dir)
	var messages []string
	slices.Sort(names)
	for _, name := range names {
		if len(name) > 3 && name[:3] == "qn-" {
			data, _ := srv.Get(dir + "/" + name)
			messages = append(messages, string(data))
		}
	}
	return messages
}

func wantMessages(t testing.TB, srv *zksynctest.Server, want ...string) {
	t.Helper()
	if got := inQueue(srv, queuePath); !slices.Equal(got, want) {
		t.Errorf("in the queue: %q, want %q", got, want)
	}
}

func put(t testing.TB, q *zksync.Queue, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := q.Put(t.Context(), []byte(m)); err != nil {
			t.Fatalf("Put %q: %v", m, err)
		}
	}
}

// numbered are n messages "<prefix>0000", "<prefix>0001" and so on.
func numbered(prefix string, n int) []string {
	messages := make([]string, n)
	for i := range messages {
		messages[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return messages
}

func newQueue(t testing.TB, srv *zksynctest.Server, opts ...zksync.QueueOption) *zksync.Queue {
	t.Helper()
	q := zksync.NewQueue(srv.Connect(t), queuePath, opts...)
	t.Cleanup(func() { q.Close() })
	return q
}

// Put adds messages at the end of the queue, nil and empty ones included.
func TestPut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		want := numbered("m", 300)
		put(t, q, want[:150]...)
		put(t, newQueue(t, srv), want[150:]...)
		wantMessages(t, srv, want...)
	})
}

// Puts of many goroutines share requests, and the Puts of one goroutine stay in order.
func TestPutsOfAGoroutineStayInOrder(t *testing.T) {
	const goroutines, each = 50, 40
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		// Answers take their time, so that all others have come until then.
		onMulti(srv, zksynctest.AfterCommit, -1, zksynctest.Delay(time.Millisecond))
		srv.ResetOps()
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() { put(t, q, numbered(fmt.Sprintf("%02d-", g), each)...) })
		}
		wg.Wait()
		of := make(map[string][]string)
		for _, m := range inQueue(srv, queuePath) {
			of[m[:3]] = append(of[m[:3]], m)
		}
		for g := range goroutines {
			prefix := fmt.Sprintf("%02d-", g)
			if want := numbered(prefix, each); !slices.Equal(of[prefix], want) {
				t.Errorf("in the queue: %q, want %q", of[prefix], want)
			}
		}
		// Hardly more than one for all of a round.
		if n := len(requests(srv)); n > 2*each {
			t.Errorf("%d requests for %d messages of each of %d goroutines", n, each, goroutines)
		}
	})
}

// PutAll puts its messages in order.
func TestPutAll(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		want := numbered("m", 1000)
		messages := make([][]byte, len(want))
		for i, m := range want {
			messages[i] = []byte(m)
		}
		put(t, q, "first")
		srv.ResetOps()
		if err := q.PutAll(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		if n := len(requests(srv)); n != 8 {
			t.Errorf("%d requests for a thousand messages, want 8", n)
		}
		wantMessages(t, srv, append([]string{"first"}, want...)...)
		srv.ResetOps()
		if err := q.PutAll(t.Context()); err != nil {
			t.Error(err)
		}
		if ops := requests(srv); len(ops) != 0 {
			t.Errorf("nothing at all asked for %v", names(ops))
		}
	})
}

// A PutAllError says how many messages are in the queue, from the first one on.
func TestPutAllFailsInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		messages := make([][]byte, 300)
		for i := range messages {
			messages[i] = fmt.Appendf(nil, "m%04d", i)
		}
		put(t, q, "first")
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Nth: 2, At: zksynctest.AfterCommit, Do: zksynctest.Delay(time.Minute)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := q.PutAll(ctx, messages...)
		var all *zksync.PutAllError
		if !errors.As(err, &all) || all.Put != 128 || all.All != 300 {
			t.Errorf("PutAll: %v, want 128 of 300", err)
		}
		wantError(t, err, zksync.ErrOutcomeUnknown, queuePath, "128 of 300")
		wantError(t, err, context.DeadlineExceeded)
		put(t, q, "last")
		got := inQueue(srv, queuePath)
		if want := append(append([]string{"first"}, numbered("m", 256)...), "last"); !slices.Equal(got, want) {
			t.Errorf("in the queue are %d: %q", len(got), got)
		}
		err = q.PutAll(ctx, messages...)
		if !errors.As(err, &all) || all.Put != 0 || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("PutAll with a ctx that has ended: %v", err)
		}
	})
}

// A message that is too large is ErrTooLarge before anything is sent.
func TestMessagesThatAreTooLarge(t *testing.T) {
	for _, limit := range []int{1 << 20, 5000} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var opts []session.Option
			if limit < 1<<20 {
				opts = append(opts, session.WithMaxRequest(limit))
			}
			q := zksync.NewQueue(srv.Connect(t, opts...), queuePath)
			defer q.Close()
			put(t, q, "first")
			srv.ResetOps()
			err := q.Put(t.Context(), make([]byte, limit))
			wantError(t, err, session.ErrTooLarge, queuePath, fmt.Sprint(limit))
			// The error says what would fit.
			var most int
			if _, after, ok := strings.Cut(err.Error(), "want at most "); ok {
				fmt.Sscan(after, &most)
			}
			// Some of the room is left for Retry and MoveTo.
			if most < limit-400-min(limit/8, 2048) || most >= limit {
				t.Fatalf("%d bytes are said to fit: %v", most, err)
			}
			wantError(t, q.Put(t.Context(), make([]byte, most+1)), session.ErrTooLarge)
			err = q.PutAll(t.Context(), []byte("small"), make([]byte, most+1))
			wantError(t, err, session.ErrTooLarge, "message 2", "0 of 2")
			if ops := requests(srv); len(ops) != 0 {
				t.Errorf("sent %v", names(ops))
			}
			if err := q.Put(t.Context(), make([]byte, most)); err != nil {
				t.Errorf("%d bytes: %v", most, err)
			}
			if got := inQueue(srv, queuePath); len(got) != 2 || len(got[1]) != most {
				t.Errorf("%d messages are in the queue, want 2", len(got))
			}
		})
	}
}

// When no sequence number is left, Put waits until the queue is empty and creates it anew. The number after the last
// one is never given to a message.
func TestQueueWithASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		other := newQueue(t, srv)
		put(t, q, "first")
		put(t, other, "second")
		srv.Create(queuePath+"/zksync-consumers", nil)
		srv.Create(queuePath+"/zksync-consumers/somebody", nil)
		if err := srv.SetNextSequence(queuePath, 2147483645); err != nil {
			t.Fatal(err)
		}
		want := numbered("m", 9)
		done := make(chan error, 1)
		go func() { // at once: some of them can be had
			for _, m := range want {
				if err := q.Put(t.Context(), []byte(m)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		pending(t, "Put without a number", done)
		time.Sleep(time.Minute)
		pending(t, "Put without a number", done)
		wantMessages(t, srv, "first", "second", want[0], want[1], want[2])
		for range 5 {
			pending(t, "Put without a number", done)
			takeFirst(t, srv)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		put(t, other, "other")
		wantMessages(t, srv, append(want[3:], "other")...)
	})
}

// A queue whose directory cannot be created anew uses its last number for one message at a time.
func TestSpentCounterWithSomethingForeign(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		srv.Create(queuePath+"/foreign", nil)
		srv.SetNextSequence(queuePath, 2147483647)
		put(t, q, "second")
		for _, m := range []string{"third", "fourth"} {
			done := make(chan error, 1)
			go func() { done <- q.Put(t.Context(), []byte(m)) }()
			for len(inQueue(srv, queuePath)) > 0 {
				pending(t, "Put without a number", done)
				takeFirst(t, srv)
				synctest.Wait()
				if got := inQueue(srv, queuePath); len(got) == 1 && got[0] == m {
					break
				}
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			wantMessages(t, srv, m)
		}
		if _, ok := srv.Get(queuePath + "/foreign"); !ok {
			t.Error("what is foreign is gone")
		}
	})
}

// A queue with a spent counter, whose directory cannot be deleted because another program has created a znode two levels
// below, goes on with one message at a time. Its Puts make few requests (freeing.deleteDir: return at).
func TestSpentCounterWithSomethingForeignBelow(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "0")
		for _, name := range []string{"/zksync-note", "/zksync-note/a", "/zksync-note/a/b"} {
			must(t, srv.Create(queuePath+name, nil))
		}
		must(t, srv.SetNextSequence(queuePath, 2147483647))
		put(t, q, "1")
		takeFirst(t, srv)
		done := background(t.Context(), func(ctx context.Context) error { return q.Put(ctx, []byte("2")) })
		pending(t, "Put without a number", done)
		// If Put asked again and again, the time would not go on.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		srv.ResetOps()
		takeFirst(t, srv)
		time.Sleep(time.Minute)
		if n := len(requests(srv)); n > 20 {
			t.Errorf("%d requests for one Put", n)
		}
		select {
		case err := <-done:
			must(t, err)
		default:
			t.Error("Put has not returned")
		}
		wantMessages(t, srv, "2")
	})
}

// putBeyondTheLastNumber starts the Put of "2" into a queue whose counter is spent. The message "1", which has the last
// number, is in its way.
func putBeyondTheLastNumber(t *testing.T, srv *zksynctest.Server, m *session.Manager) (done <-chan error) {
	t.Helper()
	q := zksync.NewQueue(m, queuePath)
	t.Cleanup(func() { closeQueue(t, q) })
	put(t, q, "0")
	must(t, srv.SetNextSequence(queuePath, 2147483647))
	put(t, q, "1")
	takeFirst(t, srv)
	return background(t.Context(), func(ctx context.Context) error { return q.Put(ctx, []byte("2")) })
}

// A server that refuses to delete the directory of a spent counter again and again, because other clients create znodes
// in it, is not asked without a pause (freeing.run: Pause).
func TestSpentCounterBesideClientsThatCreate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		done := putBeyondTheLastNumber(t, srv, m)
		n := 0
		created := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Call(func() {
			n++
			time.Sleep(time.Millisecond)
			if err := srv.Create(fmt.Sprintf("%s/zksync-markers/%d", queuePath, n), nil); err != nil {
				t.Error(err)
			}
		})})
		srv.ResetOps()
		takeFirst(t, srv)
		time.Sleep(time.Second)
		if n := len(requests(srv)); n > 100 {
			t.Errorf("%d requests in a second", n)
		}
		created.Remove()
		must(t, <-done)
		wantMessages(t, srv, "2")
	})
}

// Producers that compete for the last number of a spent counter put all their messages (sender.repair: waited).
func TestManyProducersOfASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const producers, each = 8, 10
		c := newQueue(t, srv)
		must(t, srv.Create("/queues", nil))
		must(t, srv.Create(queuePath, nil))
		must(t, srv.Create(queuePath+"/foreign", nil))
		must(t, srv.SetNextSequence(queuePath, 2147483647))
		// All producers have listed the queue before one of them puts.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		for i := range producers {
			q := newQueue(t, srv)
			go func() {
				for _, msg := range numbered(fmt.Sprint(i), each) {
					if err := q.Put(t.Context(), []byte(msg)); err != nil {
						t.Error("Put:", err)
					}
				}
			}()
		}
		var all []string
		for i := range producers {
			all = append(all, numbered(fmt.Sprint(i), each)...)
		}
		got := receive(t, c.Chan(), producers*each)
		slices.Sort(got)
		want(t, got, all)
	})
}

// A Put that deletes the directory of a spent counter, and its own marker with it, succeeds although the connection
// breaks at its next request (sender.repair: gone).
func TestPutOverTheEndOfACounter(t *testing.T) {
	for _, at := range allMoments {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			done := putBeyondTheLastNumber(t, srv, m)
			// The first transaction deletes the directory.
			lost := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Nth: 2, At: at, Do: zksynctest.Disconnect})
			takeFirst(t, srv)
			if err := <-done; err != nil {
				t.Errorf("%v: %v", at, err)
			}
			if lost.Count() == 0 {
				t.Error("the fault has not struck")
			}
			wantMessages(t, srv, "2")
		})
	}
}

// Messages that share a request are delivered also when the counter of the directory is spent, and later messages have
// their names again (message.mayRepeat).
func TestPutAllWithASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q, c := newQueue(t, srv), newQueue(t, srv)
		put(t, q, "first")
		takeFirst(t, srv)
		must(t, srv.Create(queuePath+"/foreign", nil))
		must(t, srv.SetNextSequence(queuePath, 2147483647))
		for i := range 4 {
			must(t, q.PutAll(t.Context(), fmt.Append(nil, 3*i), fmt.Append(nil, 3*i+1), fmt.Append(nil, 3*i+2)))
			want(t, receive(t, c.Chan(), 3), numbers(3*i, 3*i+3))
			synctest.Wait()
		}
	})
}

// A Put whose number is taken by a message that another client named by hand succeeds when the queue is empty.
func TestNumberIsTaken(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first", "second")
		srv.Create(queuePath+"/qn-0000000004", []byte("by hand"))
		srv.SetNextSequence(queuePath, 4)
		done := make(chan error, 1)
		go func() { done <- q.Put(t.Context(), []byte("third")) }()
		pending(t, "Put", done)
		takeFirst(t, srv)
		pending(t, "Put", done)
		takeFirst(t, srv)
		pending(t, "Put", done)
		takeFirst(t, srv)
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantMessages(t, srv, "third")
	})
}

// Two Closes of one value at the same time both return when it is closed, and do not stop the clock of a bubble.
func TestQueueClosedTwiceAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, "/q")
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		srv.Partition(live(t, m).ID()) // so that closing takes a while
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := q.Close(); err != nil {
					t.Error(err)
				}
				if err := q.Put(t.Context(), nil); !errors.Is(err, zksync.ErrQueueClosed) {
					t.Errorf("Put after Close: %v", err)
				}
			})
		}
		wg.Wait()
	})
}
