package watch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// losses are ways to lose a connection, or a session.
func losses(srv *zksynctest.Server) map[string]func(id int64) error {
	return map[string]func(int64) error{
		"nothing": func(int64) error { return nil }, "the connection": srv.Disconnect, "the session": srv.ExpireSession,
	}
}

// A change of the children is no change of the znode.
func TestNodeIsNotItsChildren(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", nil))
		st := watch.Node(t.Context(), m, "/a")
		next(t, st)
		for lost, lose := range losses(srv) {
			unseen(t, srv, m, lose, func() {
				must(t, srv.Create("/a/b", nil))
			})
			none(t, st)
			must(t, srv.Delete("/a/b"))
			if none(t, st); t.Failed() {
				t.Fatal("with the loss of", lost)
			}
		}
	})
}

// A change of data is no change of a list of children, and a child that came and went is one.
func TestChildrenAreNames(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", nil))
		must(t, srv.Create("/a/x", nil))
		st := watch.Children(t.Context(), m, "/a")
		next(t, st)
		for lost, lose := range losses(srv) {
			unseen(t, srv, m, lose, func() {
				must(t, srv.Set("/a", nil))
				must(t, srv.Set("/a/x", nil))
			})
			none(t, st)
			if lost == "nothing" {
				continue // a child that is there for a moment may be told, too
			}
			unseen(t, srv, m, lose, func() {
				must(t, srv.Create("/a/y", nil))
				must(t, srv.Delete("/a/y"))
			})
			if got := next(t, st); !slices.Equal(got, []string{"x"}) {
				t.Fatalf("children %v, with the loss of %s", got, lost)
			}
			none(t, st)
		}
	})
}

// Streams of one Manager and path share one goroutine.
func TestStreamsShareAGoroutine(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		for range 100 {
			next(t, watch.Node(t.Context(), m, "/a"))
		}
		synctest.Wait()
		if n := running(); n != 1 {
			t.Errorf("%d goroutines", n)
		}
	})
}

// The next loop over a Cache continues where the last one was left, and the contents of a Cache stay when it has ended.
func TestTreeGoesOnAndStays(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		for _, path := range []string{"/r", "/r/a", "/r/b", "/r/c"} {
			must(t, srv.Create(path, []byte(path)))
		}
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		r := newReplica()
		for range 4 {
			synctest.Wait()
			for ev, err := range c.All() {
				must(t, err)
				r.apply(t, "/r", ev)
				break
			}
		}
		if len(r.states) != 4 || c.Err() != nil {
			t.Errorf("told of %d znodes by four loops; Err: %v", len(r.states), c.Err())
		}
		must(t, m.Close())
		synctest.Wait()
		must(t, srv.Delete("/r/a"))
		time.Sleep(time.Minute)
		names, _ := c.Children("/r")
		if state, ok := c.Get("/r/a"); c.Err() == nil || !ok || string(state.Data) != "/r/a" || len(names) != 3 || c.Len() != 4 {
			t.Errorf("after the end (%v) it holds %v, and %+v, %v", c.Err(), names, state, ok)
		}
	})
}

// WaitSynced fails when ctx or the Cache ends, also while no server answers.
func TestTreeEndsWaitsForIt(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		for name, trouble := range map[string][2]func(){
			"frozen":  {srv.Freeze, srv.Thaw},
			"stopped": {srv.Stop, func() { must(t, srv.Start()) }},
		} {
			why := errors.New("why")
			ctx, cancel := context.WithCancelCause(t.Context())
			c := watch.Tree(ctx, m, "/r")
			must(t, c.WaitSynced(t.Context()))
			trouble[0]()
			waiting := make(chan error, 1)
			go func() { waiting <- c.WaitSynced(t.Context()) }()
			synctest.Wait()
			cancel(why)
			synctest.Wait()
			select {
			case err := <-waiting:
				if !errors.Is(err, why) {
					t.Errorf("%s: WaitSynced returns %v", name, err)
				}
			default:
				t.Errorf("%s: WaitSynced goes on", name)
			}
			trouble[1]()
			live(t, m)
		}
	})
}

// A znode that may not be read is tried again when it or a sibling changes, and in the next session.
func TestTreeTriesAgain(t *testing.T) {
	for name, change := range map[string]func(srv *zksynctest.Server, id int64) error{
		"a sibling":    func(srv *zksynctest.Server, _ int64) error { return srv.Create("/r/b", nil) },
		"its children": func(srv *zksynctest.Server, _ int64) error { return srv.Create("/r/a/b", nil) },
		"the session":  func(srv *zksynctest.Server, id int64) error { return srv.ExpireSession(id) },
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				m := srv.Connect(t)
				must(t, srv.Create("/r", nil))
				must(t, srv.Create("/r/a", []byte("x")))
				refused := srv.Inject(zksynctest.Fault{Path: "/r/a", Op: zkserver.OpGetData, Times: -1, Do: zksynctest.Error(zkserver.ErrNoAuth)})
				c := watch.Tree(t.Context(), m, "/r")
				must(t, c.WaitSynced(t.Context()))
				if state, ok := c.Get("/r/a"); !ok || len(state.Data) > 0 || refused.Count() == 0 {
					t.Fatalf("it holds %+v, %v", state, ok)
				}
				refused.Remove()
				must(t, change(srv, live(t, m).ID()))
				time.Sleep(time.Minute)
				if state, _ := c.Get("/r/a"); string(state.Data) != "x" {
					t.Errorf("it holds %+v", state)
				}
			})
		})
	}
}
