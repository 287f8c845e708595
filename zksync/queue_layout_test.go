package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The messages are the znodes of ZooKeeper's queue recipe: persistent and sequential, named qn-, with nothing but the
// message as their data.
func TestMessagesAreThoseOfTheRecipe(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, path)
		messages := [][]byte{[]byte("one"), {}, nil, {0, 1, 2, 0xff}}
		if err := q.PutAll(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		s := live(t, m)
		names, _, err := s.Children(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		// Other clients start with the smallest name.
		want := []string{"qn-0000000001", "qn-0000000002", "qn-0000000003", "qn-0000000004"}
		if len(names) < len(want) || !slices.Equal(names[:len(want)], want) {
			t.Fatalf("the children are %v, want %v first", names, want)
		}
		for _, name := range names[len(want):] {
			if !strings.HasPrefix(name, "zksync-") {
				t.Errorf("there is also %s", name)
			}
		}
		for i, name := range want {
			data, stat, err := s.Get(t.Context(), path+"/"+name)
			if err != nil || !slices.Equal(data, messages[i]) || (data == nil) != (messages[i] == nil) {
				t.Errorf("%s holds %#v, want %#v; error %v", name, data, messages[i], err)
			}
			if stat.EphemeralOwner != 0 {
				t.Errorf("%s is ephemeral", name)
			}
		}
		q.Close()
		if names, _, err := s.Children(t.Context(), path); err != nil || !slices.Equal(slices.DeleteFunc(names, func(name string) bool { return name == "zksync-markers" }), want) {
			t.Errorf("after Close the children are %v; error %v", names, err)
		}
	})
}

// A message that another client puts by ZooKeeper's recipe counts as a message.
func TestMessagesOfOthersCount(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		if err := s.MakeDir(t.Context(), queuePath); err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{"one", "two"} {
			if _, err := s.Create(t.Context(), queuePath+"/qn-", []byte(data), zk.FlagSequence); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "qn-", "qn-1", "qn-000000000x", "qn-+000000001", "qn-00000000000000000009x", "zz", "qn-99999999999"} {
			if err := srv.Create(queuePath+"/"+name, []byte("foreign")); err != nil {
				t.Fatal(err)
			}
		}
		q := newQueue(t, srv)
		put(t, q, "three")
		wantLen(t, q, 3)
		wantNext(t, q, "one")
	})
}

// wantError expects an error that is want and that says certain things.
func wantError(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want one that is %v", err, want)
		return
	}
	for _, what := range says {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not say %q: %v", what, err)
		}
	}
}

type looker interface {
	Len(context.Context) (int, error)
	Peek(context.Context) ([]byte, bool, error)
}

func wantLen(t testing.TB, q looker, want int) {
	t.Helper()
	if n, err := q.Len(t.Context()); n != want || err != nil {
		t.Errorf("Len: %d, %v, want %d", n, err, want)
	}
}

func wantNext(t testing.TB, q looker, want string) {
	t.Helper()
	if data, ok, err := q.Peek(t.Context()); string(data) != want || !ok || err != nil {
		t.Errorf("Peek: %q, %v, %v, want %q", data, ok, err, want)
	}
}

func wantNothing(t testing.TB, q looker) {
	t.Helper()
	if data, ok, err := q.Peek(t.Context()); ok || err != nil {
		t.Errorf("Peek: %q, %v, %v, want nothing", data, ok, err)
	}
}

// Peek returns the message that would come next, and Len counts the messages that wait or are claimed.
func TestPeek(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		wantNothing(t, q)
		wantLen(t, q, 0)
		put(t, q, "one", "two", "")
		wantNext(t, q, "one")
		wantNext(t, q, "one")
		// Somebody works on the first.
		other := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		next(t, other.Messages(), "one")
		wantNext(t, q, "two")
		wantLen(t, q, 3)
	})
}

// A PriorityQueue has a directory for each priority, Len and Peek cover all of them, and another priority is
// ErrInvalidPriority.
func TestPriorityLayout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
		defer q.Close()
		wantNothing(t, q)
		for i, priority := range []int{7, 0, 255, 7, 10} {
			if err := q.Put(t.Context(), fmt.Append(nil, "message ", i), priority); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.PutAll(t.Context(), 7, []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		for dir, want := range map[string][]string{
			"p-000": {"message 1"}, "p-007": {"message 0", "message 3", "a", "b"}, "p-010": {"message 4"}, "p-255": {"message 2"},
		} {
			if got := inQueue(srv, queuePath+"/"+dir); !slices.Equal(got, want) {
				t.Errorf("%s holds %q, want %q", dir, got, want)
			}
		}
		wantLen(t, q, 7)
		wantNext(t, q, "message 1")
		srv.Delete(queuePath + "/p-000/qn-0000000000")
		wantNext(t, q, "message 0")
		// The directory of a priority may vanish when it is empty.
		srv.Delete(queuePath + "/p-000")
		if err := q.Put(t.Context(), []byte("urgent"), 0); err != nil {
			t.Fatal(err)
		}
		wantNext(t, q, "urgent")
		for _, priority := range []int{-1, 256} {
			err := q.Put(t.Context(), nil, priority)
			wantError(t, err, zksync.ErrInvalidPriority, queuePath, fmt.Sprint(priority), "255")
			wantError(t, q.PutAll(t.Context(), priority, nil), zksync.ErrInvalidPriority)
		}
	})
}

// Len counts also messages that are not due, Peek returns the next message that is due, and an impossible time is
// ErrInvalidTime.
func TestDelayLayout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer q.Close()
		putAfter := func(message string, delay time.Duration) {
			t.Helper()
			if err := q.Put(t.Context(), []byte(message), delay); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now() // at midnight
		putAfter("in an hour", time.Hour)
		putAfter("in a minute", time.Minute)
		putAfter("in a second", time.Second+time.Nanosecond)
		if err := q.PutAll(t.Context(), time.Minute, []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		partition := fmt.Sprintf("%s/t-%010d", queuePath, start.Unix()+60)
		if got := inQueue(srv, partition); !slices.Equal(got, []string{"in a minute", "a", "b"}) {
			t.Errorf("due in a minute: %q", got)
		}
		form := regexp.MustCompile(fmt.Sprintf(`^qn-%013d-[0-9]{10}$`, start.UnixMilli()+1001))
		if found, _ := srv.Children(fmt.Sprintf("%s/t-%010d", queuePath, start.Unix())); len(found) != 1 || !form.MatchString(found[0]) {
			t.Errorf("due in a second: %v", found)
		}
		wantLen(t, q, 5)
		wantNothing(t, q)
		time.Sleep(time.Second)
		wantNothing(t, q)
		time.Sleep(time.Millisecond)
		wantNext(t, q, "in a second")
		srv.ResetOps()
		wantNext(t, q, "in a second")
		if ops := requests(srv); len(ops) != 5 { // partitions, the order znode, the messages of Retry, the partition that has begun, the message
			t.Errorf("Peek asked for %v", names(ops))
		}
		putAfter("late", -time.Hour)
		wantNext(t, q, "in a second")
		due, _ := srv.Children(fmt.Sprintf("%s/t-%010d", queuePath, start.Unix()))
		slices.Sort(due)
		srv.Delete(fmt.Sprintf("%s/t-%010d/%s", queuePath, start.Unix(), due[0]))
		wantNext(t, q, "late")
		at := time.Date(2286, 11, 20, 17, 46, 40, 0, time.UTC)
		err := q.PutAt(t.Context(), nil, at)
		wantError(t, err, zksync.ErrInvalidTime, queuePath, "2286-11-20 17:46:39.999")
		if err := q.PutAll(t.Context(), 1<<62, nil); err != nil {
			t.Error(err)
		}
		if err := q.PutAt(t.Context(), nil, at.Add(-time.Millisecond)); err != nil {
			t.Error(err)
		}
	})
}
