package zksync_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
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

func newQueue(t testing.TB, srv *zksynctest.Server, opts ...zksync.Option) *zksync.Queue {
	t.Helper()
	q := zksync.NewQueue(srv.Connect(t), queuePath, opts...)
	t.Cleanup(func() { q.Close() })
	return q
}

func TestPut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		want := numbered("m", 300)
		put(t, q, want[:150]...)
		put(t, newQueue(t, srv), want[150:]...)
		wantMessages(t, srv, want...)
	})
}

func TestPutsOfAGoroutineStayInOrder(t *testing.T) {
	const goroutines, each = 50, 40
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
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
		if n := len(requests(srv)); n > goroutines*each/10 {
			t.Errorf("%d requests for %d messages", n, goroutines*each)
		}
	})
}
