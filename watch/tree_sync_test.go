package watch_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// far is a way to the server on which everything takes d, in both directions.
func far(srv *zksynctest.Server, d time.Duration) session.Option {
	return session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		there, err := srv.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		here, link := net.Pipe()
		go carry(link, there, d)
		go carry(there, link, d)
		return here, nil
	})
}

// carry copies bytes with a delay of d, until either side is closed.
func carry(to, from net.Conn, d time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	way := make(chan piece, 1<<16)
	go func() {
		defer to.Close()
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				from.Close()
			}
		}
	}()
	defer close(way)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if err != nil {
			return
		}
		way <- piece{time.Now().Add(d), b[:n]}
	}
}

// bubbleWithWays is for tests that use far, whose last pieces arrive after the test.
func bubbleWithWays(t *testing.T, test func(t *testing.T, srv *zksynctest.Server)) {
	bounds.Bubble(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		test(t, zksynctest.Start(t))
	})
}

// WaitSynced waits until the outcome of a change is known whose znode was deleted during the read.
func TestTreeWaitSyncedWaitsForWhatHasBecomeOfAChange(t *testing.T) {
	bubbleWithWays(t, func(t *testing.T, srv *zksynctest.Server) {
		const d = 20 * time.Millisecond
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("old")))
		c := watch.Tree(t.Context(), srv.Connect(t, far(srv, d)), "/r")
		must(t, c.WaitSynced(t.Context()))
		time.Sleep(time.Second)
		time.AfterFunc(d*9/10, func() { // before the sync is there
			if err := srv.Set("/r/a", []byte("new")); err != nil {
				t.Error(err)
			}
		})
		time.AfterFunc(d*3/2, func() { // before the read of the change is
			if err := srv.Delete("/r/a"); err != nil {
				t.Error(err)
			}
		})
		must(t, c.WaitSynced(t.Context()))
		if state, ok := c.Get("/r/a"); ok && string(state.Data) == "old" {
			t.Error("the mirror has what was overwritten before the sync")
		}
		time.Sleep(time.Second)
		if _, ok := c.Get("/r/a"); ok {
			t.Error("the mirror has what was removed a second ago")
		}
	})
}

// WaitSynced waits for everything that was in the tree at the call, also for children that only a list behind the sync
// shows. The line to break: a new child inherits the epoch of the list.
func TestTreeWaitSyncedWaitsForNewChildren(t *testing.T) {
	bubbleWithWays(t, func(t *testing.T, srv *zksynctest.Server) {
		const d = 20 * time.Millisecond
		must(t, srv.Create("/r", nil))
		c := watch.Tree(t.Context(), srv.Connect(t, far(srv, d)), "/r")
		must(t, c.WaitSynced(t.Context()))
		time.Sleep(time.Second)
		for _, path := range []string{"/r/a", "/r/a/b", "/r/a/b/c"} {
			must(t, srv.Create(path, []byte("here")))
		}
		must(t, c.WaitSynced(t.Context()))
		if state, ok := c.Get("/r/a/b/c"); !ok || string(state.Data) != "here" || c.Len() != 4 {
			t.Errorf("of what was created before the call the mirror has %d znodes, and %+v", c.Len(), state)
		}
	})
}

// WaitSynced outlives the loss of a session, and returns when everything is read that the new session shows.
func TestTreeWaitSyncedOverALostSession(t *testing.T) {
	bubbleWithWays(t, func(t *testing.T, srv *zksynctest.Server) {
		const d = 20 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		m := srv.Connect(t, far(srv, d))
		must(t, srv.Create("/r", nil))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(ctx))
		for i := range 10 {
			must(t, srv.Create(fmt.Sprint("/r/", i), nil))
			must(t, srv.Create(fmt.Sprint("/r/", i, "/x"), []byte("here")))
			id := live(t, m).ID()
			// The session expires while the sync is on its way, or while a read that
			// WaitSynced waits for is.
			time.AfterFunc(time.Duration(i)*d/2, func() {
				if err := srv.ExpireSession(id); err != nil {
					t.Error(err)
				}
			})
			must(t, c.WaitSynced(ctx))
			if state, ok := c.Get(fmt.Sprint("/r/", i, "/x")); !ok || string(state.Data) != "here" {
				t.Errorf("round %d: the mirror has %+v, %v", i, state, ok)
			}
			time.Sleep(time.Minute)
			mustMirror(t, c, live(t, srv.Connect(t)), "/r")
		}
	})
}

// WaitSynced returns although znodes are created and deleted within a round trip all the time.
func TestTreeWaitSyncedAmongShortLives(t *testing.T) {
	bubbleWithWays(t, func(t *testing.T, srv *zksynctest.Server) {
		const d = 5 * time.Millisecond
		must(t, srv.Create("/r", nil))
		c := watch.Tree(t.Context(), srv.Connect(t, far(srv, d)), "/r")
		must(t, c.WaitSynced(t.Context()))
		churn, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for i := 0; churn.Err() == nil; i++ {
				if err := srv.Create(fmt.Sprint("/r/", i), nil); err != nil {
					t.Error(err)
				}
				if i >= 3 {
					if err := srv.Delete(fmt.Sprint("/r/", i-3)); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(d / 3)
			}
		}()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := c.WaitSynced(ctx); err != nil || time.Since(start) > 20*d {
			t.Errorf("WaitSynced took %v at a round trip of %v: %v", time.Since(start), 2*d, err)
		}
	})
}

// WaitSynced shows every earlier change and the mirror stays current, although setWatches is refused or its answer is
// lost.
func TestWaitSyncedBehindAFailedSetWatches(t *testing.T) {
	for name, faults := range map[string][]zksynctest.Fault{
		// The delay makes the answers to setWatches and to the next request arrive together.
		"refused": {
			{Op: zkserver.OpSetWatches, Do: zksynctest.Delay(10 * time.Millisecond)},
			{Op: zkserver.OpSetWatches, Do: zksynctest.Error(-1)},
		},
		"left out": {{Op: zkserver.OpSetWatches, Do: zksynctest.Drop}},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				m := srv.Connect(t)
				s := live(t, m)
				must(t, srv.Create("/r", nil))
				must(t, srv.Create("/r/a", []byte("old")))
				must(t, srv.Create("/r/b", nil))
				c := watch.Tree(context.Background(), m, "/r") // ends with m
				must(t, c.WaitSynced(t.Context()))
				for _, f := range faults {
					srv.Inject(f)
				}
				srv.HangHandshake(true)
				must(t, srv.Disconnect(s.ID()))
				must(t, srv.Set("/r/a", []byte("new")))
				must(t, srv.Delete("/r/b"))
				must(t, srv.Create("/r/c", nil))
				done := make(chan error)
				go func() { done <- c.WaitSynced(t.Context()) }()
				synctest.Wait()
				srv.HangHandshake(false)
				must(t, <-done)
				// mustMirror calls WaitSynced again, which may show the changes later.
				if st, _ := c.Get("/r/a"); string(st.Data) != "new" {
					t.Errorf("WaitSynced has returned, and /r/a shows %q", st.Data)
				}
				mustMirror(t, c, s, "/r")
			})
		})
	}
}
