package watch_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A flakyConn breaks after a number of bytes has arrived.
type flakyConn struct {
	net.Conn
	left int
}

func (c *flakyConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.Conn.Close()
		return 0, syscall.ECONNRESET
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// flaky dials connections of which the next n break after 100 kB.
func flaky(srv *zksynctest.Server, n *atomic.Int32) session.Option {
	return session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := srv.Dial(ctx, network, address)
		if err == nil && n.Add(-1) >= 0 {
			return &flakyConn{c, 100 << 10}, nil
		}
		return c, err
	})
}

// A Node goes on over connections that break in the middle of its answer, also more often than a read is repeated.
func TestNodeOverBrokenAnswers(t *testing.T) {
	for broken := int32(1); broken <= 5; broken++ {
		t.Run(fmt.Sprint(broken), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				must(t, srv.Create("/r", nil))
				must(t, srv.Create("/r/a", []byte(strings.Repeat("x", 500<<10))))
				var n atomic.Int32
				n.Store(broken)
				m := srv.Connect(t, flaky(srv, &n))
				node := watch.Node(t.Context(), m, "/r/a")
				state, ok := <-node.Events()
				if !ok {
					t.Errorf("after %d lost connections the stream has ended: %v", broken, node.Err())
				} else if len(state.Data) != 500<<10 {
					t.Error(state)
				}
			})
		})
	}
}

// A Tree reads a znode over connections that break in the middle of its answer, and WaitSynced waits for it.
func TestTreeOverBrokenAnswers(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte(strings.Repeat("x", 500<<10))))
		var n atomic.Int32
		n.Store(4)
		m := srv.Connect(t, flaky(srv, &n))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		state, ok := c.Get("/r/a")
		if len(state.Data) != 500<<10 {
			t.Errorf("synced after 4 lost connections, the mirror has %d bytes (%v)", len(state.Data), ok)
		}
		time.Sleep(time.Hour)
		must(t, srv.Set("/r/a", []byte("new")))
		time.Sleep(time.Hour)
		must(t, srv.Disconnect(live(t, m).ID()))
		time.Sleep(time.Hour)
		must(t, srv.Set("/r/a", []byte("newer")))
		must(t, c.WaitSynced(t.Context()))
		if state, ok = c.Get("/r/a"); string(state.Data) != "newer" {
			t.Errorf("hours, two changes and a reconnect later, synced, the mirror has %d bytes (%v)", len(state.Data), ok)
		}
	})
}

// Calls of WaitSynced that have ended leave nothing behind: no request goes on for them, and the mirror goes on.
func TestWaitSyncedThatHasEndedLeavesNoRequest(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("old")))
		m := srv.Connect(t)
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		// Only transactions are refused: reads are answered.
		refused := srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Path: "/r", At: zkserver.BeforeCommit, Do: zkserver.Error(-127), Times: -1})
		for range 300 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if err := c.WaitSynced(ctx); err == nil {
				t.Fatal("synced")
			}
			cancel()
		}
		time.Sleep(time.Minute)
		before := refused.Count()
		time.Sleep(time.Minute)
		must(t, srv.Set("/r/a", []byte("new")))
		must(t, srv.Create("/r/b", []byte("new")))
		time.Sleep(10 * time.Minute)
		if got, _ := c.Get("/r/a"); string(got.Data) != "new" {
			t.Errorf("ten minutes after a change that the server reported, with reads that are answered, the mirror has %q; %+v", got.Data, m.Stats().Waits)
		}
		if n := refused.Count() - before; n > 100 {
			t.Errorf("%d transactions for calls that have returned", n)
		}
	})
}

// A TreeEvent without Err has the data of the znode.
func TestTreeEventOfDataThatAreAskedAgain(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("data")))
		no1 := srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-102), Times: -1})
		no2 := srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-102), Times: -1})
		c := watch.Tree(t.Context(), srv.Connect(t), "/r")
		must(t, c.WaitSynced(t.Context()))
		go func() {
			for ev := range c.Events() {
				if ev.Path == "/r/a" && ev.Err == nil && string(ev.Data) != "data" {
					t.Errorf("the event %v of %s has no error, and the data %q with czxid %d: the znode has never had them", ev.Type, ev.Path, ev.Data, ev.Stat.Czxid)
				}
			}
		}()
		time.Sleep(time.Second)
		// The ACL is opened, a sibling is created, and the server is busy for a moment.
		no1.Remove()
		no2.Remove()
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-127), Times: 5})
		must(t, srv.Create("/r/b", nil))
		time.Sleep(time.Minute)
		if got, _ := c.Get("/r/a"); string(got.Data) != "data" {
			t.Errorf("in the end %q", got.Data)
		}
	})
}

// A list that was never read is never reported as readable.
func TestTreeEventOfAListThatIsAskedAgain(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("data")))
		must(t, srv.Create("/r/a/child", []byte("data")))
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-102)})
		c := watch.Tree(t.Context(), srv.Connect(t), "/r")
		must(t, c.WaitSynced(t.Context()))
		go func() {
			for ev := range c.Events() {
				_, ok := c.Get("/r/a/child")
				if ev.Path == "/r/a" && ev.Err == nil && !ok {
					t.Errorf("the event %v of %s has no error, and its list was never read", ev.Type, ev.Path)
				}
			}
		}()
		time.Sleep(time.Second)
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetChildren2, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Error(-127), Times: -1})
		must(t, srv.Create("/r/b", nil))
		time.Sleep(time.Second)
		must(t, srv.Set("/r/a", []byte("data2")))
		time.Sleep(time.Minute)
	})
}

// A znode whose data was too large once is read again when its data have changed.
func TestTreeOfDataThatWereTooLarge(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte(strings.Repeat("x", 5000))))
		m := srv.Connect(t, session.WithMaxAnswer(1024))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		must(t, srv.Set("/r/a", []byte("small")))
		must(t, c.WaitSynced(t.Context()))
		if got, ok := c.Get("/r/a"); string(got.Data) != "small" {
			t.Errorf("synced, and the mirror has %q (%v)", got.Data, ok)
		}
		must(t, srv.Disconnect(live(t, m).ID()))
		time.Sleep(time.Hour)
		must(t, srv.Set("/r/a", []byte("small2")))
		time.Sleep(time.Hour)
		must(t, c.WaitSynced(t.Context()))
		if got, ok := c.Get("/r/a"); string(got.Data) != "small2" {
			t.Errorf("two hours, a reconnect and two changes later, synced, the mirror has %q (%v)", got.Data, ok)
		}
	})
}

// The refusals of many znodes do not keep the mirror from following the others.
func TestTreeBesideManyRefusals(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte("old")))
		for i := range 260 {
			must(t, srv.Create(fmt.Sprintf("/r/bad%d", i), nil))
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Path: "/r/bad*", At: zkserver.BeforeCommit, Do: zkserver.Error(-1), Times: -1})
		c := watch.Tree(t.Context(), srv.Connect(t), "/r")
		time.Sleep(time.Minute)
		must(t, srv.Set("/r/a", []byte("new")))
		time.Sleep(time.Minute)
		if got, _ := c.Get("/r/a"); string(got.Data) != "new" {
			t.Errorf("a minute after a change of a znode that is readable, the mirror has %q", got.Data)
		}
	})
}

// A znode whose data were too large, and have become smaller before the Tree looks for the znode, is read.
func TestTreeOfDataThatWereTooLargeBeforeTheLook(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/a", []byte(strings.Repeat("x", 5000))))
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, Path: "/r/a", At: zkserver.BeforeCommit, Do: zkserver.Call(func() { must(t, srv.Set("/r/a", []byte("small"))) })})
		c := watch.Tree(t.Context(), srv.Connect(t, session.WithMaxAnswer(1024)), "/r")
		must(t, c.WaitSynced(t.Context()))
		if got, ok := c.Get("/r/a"); string(got.Data) != "small" {
			t.Errorf("synced, and the mirror has %q (%v)", got.Data, ok)
		}
	})
}

// A Tree that knows that the data or the children of a znode are too large breaks no more connections for them when other
// znodes beside that znode change.
func TestTreeBesideAnAnswerThatIsTooLarge(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t, session.WithMaxAnswer(2000))
		must(t, srv.Create("/r", nil))
		must(t, srv.Create("/r/data", make([]byte, 4000)))
		must(t, srv.Create("/r/list", nil))
		for i := range 40 {
			must(t, srv.Create(fmt.Sprintf("/r/list/%d%s", i, strings.Repeat("x", 100)), nil))
		}
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		before := m.Stats().Connections
		for i := range 10 {
			must(t, srv.Create(fmt.Sprintf("/r/s%d", i), nil))
			must(t, c.WaitSynced(t.Context()))
		}
		must(t, srv.Set("/r/data", make([]byte, 5000)))
		must(t, c.WaitSynced(t.Context()))
		if n := m.Stats().Connections - before; n > 0 {
			t.Errorf("10 small znodes were created, and %d connections were broken", n)
		}
		must(t, srv.Set("/r/data", []byte("small")))
		must(t, c.WaitSynced(t.Context()))
		if got, _ := c.Get("/r/data"); string(got.Data) != "small" {
			t.Errorf("synced, and the mirror has %d bytes, want %q", len(got.Data), "small")
		}
	})
}
