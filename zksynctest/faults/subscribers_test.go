package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
)

// A subscriber follows znodes below its own directory.
type subscriber struct {
	name string
	// arrange creates the first znodes.
	arrange func(t *testing.T, w writer)
	// follow starts the subscriber. The result returns the subscriber's current view.
	follow func(t *testing.T, m *session.Manager, dir string) (known func() string)
	// first is the subscriber's first view; empty if the subscriber waits.
	first string
	// change changes the directory while the subscriber is disconnected.
	change func(t *testing.T, w writer)
	// want is the subscriber's view afterwards.
	want string
	// between makes another change between the second break and the third connection, after which
	// the subscriber's view is last. It may be nil.
	between func(t *testing.T, w writer)
	last    string
}

var subscribers = []subscriber{
	{
		name:    "Node",
		arrange: func(_ *testing.T, w writer) { w.create("", "old") },
		follow: func(t *testing.T, m *session.Manager, dir string) func() string {
			return newest(watch.Node(t.Context(), m, dir).Events(), func(st watch.State) string { return string(st.Data) })
		},
		first:  "old",
		change: func(_ *testing.T, w writer) { w.set("", "new") },
		want:   "new",
	},
	{
		name: "Children",
		arrange: func(_ *testing.T, w writer) {
			w.create("", "")
			w.create("/old", "")
		},
		follow: func(t *testing.T, m *session.Manager, dir string) func() string {
			return newest(watch.Children(t.Context(), m, dir).Events(), func(names []string) string { return fmt.Sprint(names) })
		},
		first: "[old]",
		change: func(_ *testing.T, w writer) {
			w.create("/new", "")
			w.remove("/old")
		},
		want: "[new]",
	},
	{
		name: "Tree",
		arrange: func(_ *testing.T, w writer) {
			w.create("", "")
			for _, name := range []string{"/changed", "/removed", "/later"} {
				w.create(name, "old")
			}
		},
		follow: followTree,
		first:  "[changed=old later=old removed=old]",
		change: func(_ *testing.T, w writer) {
			w.set("/changed", "new")
			w.remove("/removed")
			w.create("/created", "new")
		},
		want:    "[changed=new created=new later=old]",
		between: func(_ *testing.T, w writer) { w.set("/later", "new") },
		last:    "[changed=new created=new later=new]",
	},
	{
		name:    "Queue.Take",
		arrange: func(_ *testing.T, w writer) { w.create("", "") },
		follow: func(t *testing.T, m *session.Manager, dir string) func() string {
			q := zksync.NewQueue(m, dir)
			taken := make(chan string, 1)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer close(taken)
				data, err := q.Take(ctx)
				switch {
				case err == nil:
					taken <- string(data)
				case ctx.Err() == nil:
					t.Errorf("Take: %v", err)
				}
			}()
			t.Cleanup(func() {
				cancel()
				<-done
				q.Close()
			})
			return newest(taken, func(s string) string { return s })
		},
		change: func(t *testing.T, w writer) {
			q := zksync.NewQueue(w.m, w.dir)
			defer q.Close()
			if err := q.Put(t.Context(), []byte("message")); err != nil {
				t.Fatal(err)
			}
		},
		want: "message",
	},
	{
		name:    "Group.Watch",
		arrange: func(_ *testing.T, w writer) { w.create("", "") },
		follow: func(t *testing.T, m *session.Manager, dir string) func() string {
			members := zksync.NewGroup(m, dir).Watch(t.Context())
			return newest(members.Events(), func(list []zksync.Member) string {
				var ids []string
				for _, member := range list {
					ids = append(ids, member.ID)
				}
				return fmt.Sprint(ids)
			})
		},
		first: "[]",
		change: func(t *testing.T, w writer) {
			if _, err := zksync.NewGroup(w.m, w.dir).Join(t.Context(), "member", nil); err != nil {
				t.Fatal(err)
			}
		},
		want: "[member]",
	},
}

// followTree follows a directory with a Tree.
func followTree(t *testing.T, m *session.Manager, dir string) func() string {
	tree := watch.Tree(t.Context(), m, dir)
	if err := tree.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return func() string {
		names, _ := tree.Children(dir)
		var known []string
		for _, name := range names {
			if st, ok := tree.Get(dir + "/" + name); ok && len(st.Data) > 0 {
				known = append(known, name+"="+string(st.Data))
			}
		}
		slices.Sort(known)
		return fmt.Sprint(known)
	}
}

// newest keeps the newest value of a channel.
func newest[T any](c <-chan T, text func(T) string) func() string {
	var mu sync.Mutex
	last := "nothing"
	go func() {
		for v := range c {
			mu.Lock()
			last = text(v)
			mu.Unlock()
		}
	}()
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

// A writer changes a directory with its own session.
type writer struct {
	t   *testing.T
	m   *session.Manager
	dir string
}

func (w writer) do(fn func(context.Context, *session.Session) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.m.Do(ctx, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) create(name, data string) {
	w.t.Helper()
	w.do(func(ctx context.Context, s *session.Session) error {
		_, err := s.Create(ctx, w.dir+name, []byte(data), 0)
		return err
	})
}

func (w writer) set(name, data string) {
	w.t.Helper()
	w.do(func(ctx context.Context, s *session.Session) error {
		_, err := s.Set(ctx, w.dir+name, []byte(data), -1)
		return err
	})
}

func (w writer) remove(name string) {
	w.t.Helper()
	w.do(func(ctx context.Context, s *session.Session) error { return s.Delete(ctx, w.dir+name, -1) })
}

// createAll creates many znodes in few requests.
func (w writer) createAll(names []string, data string) {
	w.t.Helper()
	for batch := range slices.Chunk(names, 100) {
		var ops []any
		for _, name := range batch {
			ops = append(ops, &zk.CreateRequest{Path: w.dir + name, Data: []byte(data), Acl: zk.WorldACL(zk.PermAll)})
		}
		w.do(func(ctx context.Context, s *session.Session) error {
			_, err := s.Multi(ctx, ops...)
			return err
		})
	}
}
