package zksync_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// In kazoo's layout a queue's directory has nothing but messages, since kazoo takes every child for a message, and it
// stays when it is empty.
func TestQueueInKazoosLayout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		form := regexp.MustCompile(`^entry-100-[0-9]{10}$`)
		only := func(n int) {
			t.Helper()
			names, _ := srv.Children("/app/orders")
			for _, name := range names {
				if !form.MatchString(name) {
					t.Errorf("in the directory is %q", name)
				}
			}
			if len(names) != n {
				t.Errorf("there are %q, want %d", names, n)
			}
		}
		q := zksync.NewQueue(m, "/app/orders", asKazoo, zksync.WithCapacity(5))
		must(t, q.Put(t.Context(), []byte("0")))
		must(t, q.PutAll(t.Context(), []byte("1"), []byte("2"), []byte("3"), []byte("4")))
		only(5)
		if n, err := q.Len(t.Context()); n != 5 || err != nil {
			t.Errorf("Len: %d, %v", n, err)
		}
		full := start(func() error { return q.Put(t.Context(), []byte("5")) })
		pending(t, "Put to a full queue", full)
		data, err := q.Take(t.Context())
		if string(data) != "0" || err != nil {
			t.Errorf("took %q, %v", data, err)
		}
		must(t, <-full)
		synctest.Wait()
		only(5)
		for i := 1; i <= 5; i++ {
			msg := <-q.Messages()
			if string(msg.Data) != fmt.Sprint(i) {
				t.Errorf("received %q, want %d", msg.Data, i)
			}
			must(t, msg.Ack(t.Context()))
		}
		must(t, q.Close())
		only(0)
		for _, op := range srv.Ops() {
			if op.Code == zkserver.OpCreateContainer && strings.HasSuffix(op.Path, "/orders") {
				t.Error("the directory was asked for as a container:", op)
			}
		}
	})
}

// Kazoo's messages come in the order of their priorities, and within a priority in the order in which they were put.
func TestKazoosPriorities(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		must(t, srv.Create("/app", nil))
		must(t, srv.Create("/app/orders", nil))
		s := live(t, m)
		for i, name := range []string{"entry-100-", "entry-999-", "entry-000-", "entry-100-", "entry-1000-", "entry-10-", "entry-1x0-", "other-100-", "entry--00-", "qn-"} {
			if _, err := s.Create(t.Context(), "/app/orders/"+name, fmt.Append(nil, i), zk.FlagSequence); err != nil {
				t.Fatal(err)
			}
		}
		q := zksync.NewQueue(m, "/app/orders", asKazoo)
		must(t, q.Put(t.Context(), []byte("ours")))
		if data, ok, err := q.Peek(t.Context()); string(data) != "2" || !ok || err != nil {
			t.Errorf("Peek: %q, %v, %v", data, ok, err)
		}
		var got []string
		for {
			data, ok, err := q.TryTake(t.Context())
			must(t, err)
			if !ok {
				break
			}
			got = append(got, string(data))
		}
		if want := []string{"2", "0", "3", "ours", "1"}; !slices.Equal(got, want) {
			t.Errorf("took %q, want %q", got, want)
		}
		must(t, q.Close())
	})
}

// The directory of a queue in kazoo's layout is created by the first producer or consumer, and before a lost answer is
// repeated.
func TestKazoosDirectoryIsMade(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, "/app/orders", asKazoo)
		if _, ok, err := q.TryTake(t.Context()); ok || err != nil {
			t.Errorf("TryTake: %v, %v", ok, err)
		}
		if strings.Contains(lineOf(srv.Dump(), "/app/orders "), "container") {
			t.Error("the directory is a container:", srv.Dump())
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		must(t, q.Put(t.Context(), []byte("once")))
		if n, err := q.Len(t.Context()); n != 1 || err != nil {
			t.Errorf("Len: %d, %v", n, err)
		}
		must(t, q.Close())

		producer := zksync.NewQueue(m, "/app/first", asKazoo)
		must(t, producer.Put(t.Context(), nil))
		if line := lineOf(srv.Dump(), "/app/first "); line == "" || strings.Contains(line, "container") {
			t.Errorf("the producer has made %q", line)
		}
		must(t, producer.Close())
	})
}

func lineOf(dump, begin string) string {
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
	return ""
}

// A Queue refuses a layout that it does not have with ErrInvalidOption.
func TestQueueRefusesLayouts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := zksync.NewQueue(srv.Connect(t), "/q", zksync.WithLayout(zksync.LayoutLeaderSelector))
		if err := q.Put(t.Context(), nil); !errors.Is(err, zksync.ErrInvalidOption) || !strings.Contains(err.Error(), "WithLayout") {
			t.Error(err)
		}
	})
}
