package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func takes(t testing.TB, q *zksync.Queue, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	data, err := q.Take(ctx)
	if err != nil {
		t.Fatal("Take:", err)
	}
	if string(data) != want {
		t.Errorf("took %q, want %q", data, want)
	}
}

// Take returns the messages in order, each once, and TryTake returns false for an empty queue.
func TestTake(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, path)
		if data, ok, err := q.TryTake(t.Context()); ok || err != nil {
			t.Errorf("TryTake of nothing: %q, %v, %v", data, ok, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("Take of nothing:", err)
		}
		offer(t, srv.Connect(t), path, 0, 20)
		for i := range 10 {
			takes(t, q, fmt.Sprint(i))
		}
		for i := 10; i < 20; i++ {
			if data, ok, err := q.TryTake(t.Context()); !ok || err != nil || string(data) != fmt.Sprint(i) {
				t.Errorf("TryTake: %q, %v, %v", data, ok, err)
			}
		}
		waiting := make(chan string)
		go func() {
			data, err := q.Take(t.Context())
			waiting <- fmt.Sprintf("%s %v", data, err)
		}()
		offer(t, srv.Connect(t), path, 20, 21)
		if got := <-waiting; got != "20 <nil>" {
			t.Error("Take that has waited:", got)
		}
		closeQueue(t, q)
		emptyQueue(t, m, path)
	})
}

// Many Takes beside a client of ZooKeeper's recipe take each message once.
func TestTakeBesideOthers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		const n, takers = 300, 6
		path := servers.Path(t)
		m := srv.Connect(t)
		offer(t, m, path, 0, n)
		var mu sync.Mutex
		var all []string
		note := func(data []byte) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, string(data))
		}
		var wg sync.WaitGroup
		for i := range takers {
			m := srv.Connect(t)
			wg.Go(func() {
				if i == 0 {
					javaTakes(t, live(t, m), path, note)
					return
				}
				q := zksync.NewQueue(m, path)
				defer q.Close()
				for {
					data, ok, err := q.TryTake(t.Context())
					if err != nil {
						t.Error(err)
					}
					if !ok {
						return
					}
					note(data)
				}
			})
		}
		wg.Wait()
		wantAll(t, all, n)
		emptyQueue(t, m, path)
	})
}

// javaTakes takes as ZooKeeper's DistributedQueue does: the smallest, by removing it.
func javaTakes(t *testing.T, s interface {
	Children(context.Context, string) ([]string, *zk.Stat, error)
	Get(context.Context, string) ([]byte, *zk.Stat, error)
	Delete(context.Context, string, int32) error
}, path string, note func([]byte)) {
	for {
		names, _, err := s.Children(t.Context(), path)
		if err != nil {
			t.Error(err)
			return
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name[:3] != "qn-" })
		if len(names) == 0 {
			return
		}
		for _, name := range names {
			data, _, err := s.Get(t.Context(), path+"/"+name)
			if err == nil {
				err = s.Delete(t.Context(), path+"/"+name, -1)
			}
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			note(data)
			break
		}
	}
}

// wantAll fails the test if not each of n numbers is there, once.
func wantAll(t testing.TB, got []string, n int) {
	t.Helper()
	seen := make(map[string]int)
	for _, v := range got {
		seen[v]++
	}
	for _, v := range numbers(0, n) {
		if seen[v] != 1 {
			t.Errorf("message %s came %d times", v, seen[v])
		}
	}
	if len(got) != n {
		t.Errorf("%d messages, want %d", len(got), n)
	}
}

// Take takes no message that is claimed.
func TestTakeBesideMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 4)
		q := newQueue(t, srv, zksync.WithPrefetch(1))
		next(t, q.Messages(), "0")
		synctest.Wait()
		other := newQueue(t, srv)
		takes(t, other, "1")
		// Beside the channel of the same value, too.
		takes(t, q, "2")
		closeQueue(t, q)
		takes(t, other, "0")
		takes(t, other, "3")
		synctest.Wait()
		wantLeft(t, srv, 0, 0)
	})
}

// A Take that waits ends with ErrQueueClosed at Close, and with ErrClosed when the Manager is closed.
func TestTakeUntilClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		taking := background(t.Context(), func(ctx context.Context) error {
			_, err := q.Take(ctx)
			return err
		})
		pending(t, "Take", taking)
		closeQueue(t, q)
		if err := <-taking; !errors.Is(err, zksync.ErrQueueClosed) {
			t.Error("Take:", err)
		}
		if _, _, err := q.TryTake(t.Context()); !errors.Is(err, zksync.ErrQueueClosed) {
			t.Error("TryTake:", err)
		}
		q = zksync.NewQueue(m, queuePath)
		defer q.Close()
		taking = background(t.Context(), func(ctx context.Context) error {
			_, err := q.Take(ctx)
			return err
		})
		m.Close()
		if err := <-taking; !errors.Is(err, zksync.ErrClosed) {
			t.Error("Take:", err)
		}
	})
}

// A Take that waits outlives lost sessions, and asks nothing while the queue is empty.
func TestTakeOverSessions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		got := make(chan []byte, 1)
		go func() {
			data, err := q.Take(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- data
		}()
		synctest.Wait()
		srv.ExpireSession(live(t, m).ID())
		time.Sleep(time.Minute)
		srv.ResetOps()
		time.Sleep(time.Hour)
		if ops := requests(srv); len(ops) > 0 {
			t.Errorf("%d requests in an idle hour: %s", len(ops), names(ops))
		}
		offer(t, srv.Connect(t), queuePath, 0, 1)
		if data := <-got; string(data) != "0" {
			t.Errorf("took %q", data)
		}
		wantLeft(t, srv, 0, 0)
	})
}
