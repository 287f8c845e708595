package watch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Cache comes to equal the server's tree, and WaitSynced returns when it does.
func TestTreeMirrors(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		root := servers.Path(t)
		c := watch.Tree(t.Context(), m, root)
		must(t, c.WaitSynced(t.Context()))
		if c.Len() != 0 {
			t.Errorf("%d znodes below a root that does not exist", c.Len())
		}
		for _, path := range []string{"", "/a", "/a/b", "/a/b/c", "/d"} {
			_, err := s.Create(t.Context(), root+path, []byte(path), 0)
			must(t, err)
		}
		mustMirror(t, c, s, root)
		_, err := s.Set(t.Context(), root+"/a/b", []byte("new"), -1)
		must(t, err)
		// After WaitSynced the Cache has every earlier write.
		must(t, c.WaitSynced(t.Context()))
		if state, ok := c.Get(root + "/a/b"); !ok || string(state.Data) != "new" || state.Stat.Version != 1 {
			t.Errorf("Get: %+v, %v", state, ok)
		}
		if names, ok := c.Children(root); !ok || !slices.Equal(names, []string{"a", "d"}) {
			t.Errorf("Children: %v, %v", names, ok)
		}
		for _, path := range []string{"/a/b/c", "/a/b"} {
			must(t, s.Delete(t.Context(), root+path, -1))
		}
		mustMirror(t, c, s, root)
		for _, path := range []string{"/a", "/d", ""} {
			must(t, s.Delete(t.Context(), root+path, -1))
		}
		mustMirror(t, c, s, root)
		if _, ok := c.Get(root); ok {
			t.Error("the root is still there")
		}
		_, err = s.Create(t.Context(), root, nil, 0)
		must(t, err)
		mustMirror(t, c, s, root)
		if names, ok := c.Children(root); !ok || len(names) != 0 {
			t.Errorf("Children: %v, %v", names, ok)
		}
	})
}

// A Cache can follow the root of the server.
func TestTreeOfTheServersRoot(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", []byte("x")))
		c := watch.Tree(t.Context(), m, "/")
		must(t, c.WaitSynced(t.Context()))
		if state, ok := c.Get("/a"); !ok || string(state.Data) != "x" {
			t.Errorf("Get: %+v, %v", state, ok)
		}
		if names, ok := c.Children("/"); !ok || !slices.Contains(names, "a") {
			t.Errorf("Children: %v, %v", names, ok)
		}
	})
}

// A Cache reports only real changes, parents before children and deletions the other way round, in the order of zxids.
func TestTreeTellsWhatReallyChanged(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		for _, path := range []string{"/r", "/r/a", "/r/a/b", "/r/c"} {
			must(t, srv.Create(path, nil))
		}
		c := watch.Tree(t.Context(), m, "/r")
		r := newReplica()
		if n := r.drain(t, "/r", c); n != 4 {
			t.Fatalf("%d events for four znodes", n)
		}
		for _, lose := range []func(int64) error{srv.Disconnect, srv.ExpireSession} {
			must(t, lose(live(t, m).ID()))
			time.Sleep(time.Hour)
			if n := r.drain(t, "/r", c); n != 0 {
				t.Errorf("%d events, and nothing has changed", n)
			}
			unseen(t, srv, m, lose, func() {
				must(t, srv.Delete("/r/a/b"))
				must(t, srv.Create("/r/a/b", nil))
				must(t, srv.Set("/r/c", nil))
			})
			time.Sleep(time.Hour)
			if n := r.drain(t, "/r", c); n != 2 {
				t.Errorf("%d events for two changes", n)
			}
			mustMirror(t, c, live(t, m), "/r")
		}
	})
}

// Events of a Cache that are not received are merged to one event for each znode.
func TestTreeSlowReader(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/r", nil))
		c := watch.Tree(t.Context(), m, "/r")
		r := newReplica()
		// No subscriber reads while znodes are created and deleted: the pending
		// events stay few.
		for i := range 200 {
			path := fmt.Sprintf("/r/n%d", i)
			must(t, srv.Create(path, nil))
			must(t, srv.Create(path+"/x", nil))
			synctest.Wait()
			if i%20 > 0 {
				must(t, srv.Delete(path+"/x"))
				must(t, srv.Delete(path))
			}
			for range 3 {
				must(t, srv.Set("/r", fmt.Append(nil, i)))
				synctest.Wait()
			}
		}
		if n := r.drain(t, "/r", c); n != 21 {
			t.Errorf("%d events for a tree of 21 znodes", n)
		}
		mustMirror(t, c, live(t, m), "/r")
		if got, want := r.data(), mirrored(c, "/r"); !maps.Equal(got, want) {
			t.Errorf("the reader has\n%s", difference(got, want))
		}
	})
}

// A Cache ends like a stream, with ctx, with the Manager and where the root may not be read, but not when a loop is
// left.
func TestTreeEnds(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s := live(t, m)
		_, err := s.Create(t.Context(), "/secret", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
		must(t, err)
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		closed := srv.Connect(t)
		for _, test := range []struct {
			name string
			c    *watch.Cache
			end  func()
			want []error
		}{
			{"invalid path", watch.Tree(t.Context(), m, "/a//b"), nil, []error{session.ErrInvalidPath}},
			{"may not be read", watch.Tree(t.Context(), m, "/secret"), nil, []error{zk.ErrNoAuth}},
			{"ctx", watch.Tree(ctx, m, "/a"), func() { cancel(cause) }, []error{context.Canceled, cause}},
			{"manager", watch.Tree(t.Context(), closed, "/a"), func() { closed.Close() }, []error{session.ErrClosed}},
		} {
			if test.end != nil {
				must(t, test.c.WaitSynced(t.Context()))
				test.end()
			}
			var last error
			for _, err := range test.c.All() {
				last = err
			}
			for _, want := range test.want {
				if !errors.Is(last, want) || !errors.Is(test.c.Err(), want) {
					t.Errorf("%s: ended with %v, want %v", test.name, last, want)
				}
				if err := test.c.WaitSynced(t.Context()); !errors.Is(err, want) {
					t.Errorf("%s: WaitSynced returns %v", test.name, err)
				}
			}
		}
		synctest.Wait()
		if n := running(); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
		// A wait that is given up says so.
		c := watch.Tree(t.Context(), m, "/a")
		srv.Freeze()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := c.WaitSynced(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("WaitSynced with a frozen server:", err)
		}
		srv.Thaw()
	})
}

// A znode that may not be read is in a Cache without data, and TreeEvent.Err says so.
func TestTreeWithPartsThatMayNotBeRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s := live(t, m)
		must(t, srv.Create("/r", nil))
		_, err := s.Create(t.Context(), "/r/secret", []byte("x"), 0, zk.DigestACL(zk.PermRead, "joe", "x")...)
		must(t, err)
		must(t, srv.Create("/r/open", []byte("x")))
		c := watch.Tree(t.Context(), m, "/r")
		r := newReplica()
		denied := 0
		for range 3 {
			ev := <-c.Events()
			r.apply(t, "/r", ev)
			if ev.Err != nil {
				denied++
				if ev.Path != "/r/secret" || !errors.Is(ev.Err, zk.ErrNoAuth) || ev.Data != nil {
					t.Errorf("event %+v", ev)
				}
			}
		}
		if denied != 1 || c.Len() != 3 {
			t.Errorf("%d of %d are told as unreadable, want one of three", denied, c.Len())
		}
		// It is seen to go, and to come back readable.
		must(t, srv.Delete("/r/secret"))
		must(t, srv.Create("/r/secret", []byte("y")))
		time.Sleep(time.Minute)
		r.drain(t, "/r", c)
		mustMirror(t, c, s, "/r")
		if state, _ := c.Get("/r/secret"); string(state.Data) != "y" {
			t.Errorf("Get: %+v", state)
		}
		// A znode that is deleted while it is unreadable has no watch: the list shows
		// the deletion.
		must(t, srv.Delete("/r/secret"))
		_, err = s.Create(t.Context(), "/r/secret", []byte("x"), 0, zk.DigestACL(zk.PermRead, "joe", "x")...)
		must(t, err)
		time.Sleep(time.Minute)
		r.drain(t, "/r", c)
		must(t, srv.Delete("/r/secret"))
		time.Sleep(time.Minute)
		if r.drain(t, "/r", c); c.Len() != 2 || len(r.states) != 2 {
			t.Errorf("%d znodes in the mirror and %d by its events, want two", c.Len(), len(r.states))
		}
	})
}

// The watches of a branch that is removed with its znodes are given back while the
// Cache goes on.
func TestTreeGivesTheWatchesOfRemovedBranchesBack(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		c := watch.Tree(t.Context(), m, "/r")
		paths := plant(t, live(t, srv.Connect(t)), "/r", 600)
		must(t, c.WaitSynced(t.Context()))
		// The lists of leaves and their data fire; a list that is refused does not, and
		// the Cache gives up the nodes below it.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: "/r", Times: -1, Do: zksynctest.Error(zkserver.ErrNoAuth)})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: "/r/*", Times: -1, Do: zksynctest.Error(zkserver.ErrNoAuth)})
		for d := range 6 {
			must(t, srv.Create(fmt.Sprint("/r/", d, "/one-more"), nil))
		}
		time.Sleep(time.Minute)
		if n := srv.Watches(); c.Len() > 7 || n > 2*c.Len()+64 {
			t.Errorf("%d watches for %d znodes of %d", n, c.Len(), len(paths))
		}
	})
}

// Each znode of a Cache costs two watches, which are removed when the Cache ends.
func TestTreeGivesItsWatchesBack(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/r", nil))
		for i := range 500 {
			must(t, srv.Create(fmt.Sprintf("/r/%d", i), nil))
		}
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			c := watch.Tree(ctx, m, "/r")
			must(t, c.WaitSynced(ctx))
			if n := srv.Watches(); n != 2*501 {
				t.Errorf("%d watches for 501 znodes, want two for each", n)
			}
			cancel()
			synctest.Wait()
			if n := srv.Watches(); n > 100 {
				t.Errorf("%d watches are left", n)
			}
		}
	})
}
