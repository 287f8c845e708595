package watch_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A slowConn delivers 256 bytes in a tenth of a second while slow is set.
type slowConn struct {
	net.Conn
	slow *atomic.Bool
}

func (c *slowConn) Read(p []byte) (int, error) {
	if c.slow.Load() {
		time.Sleep(100 * time.Millisecond)
		p = p[:min(len(p), 256)]
	}
	return c.Conn.Read(p)
}

// slowable returns a Manager whose network is slow while slow is set.
func slowable(t *testing.T, srv *zksynctest.Server) (m *session.Manager, slow *atomic.Bool) {
	slow = new(atomic.Bool)
	m = srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := srv.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &slowConn{conn, slow}, nil
	}))
	return m, slow
}

// A Node goes on after a time in which the network was so slow that every answer broke its connection.
func TestNodeAfterASlowNetwork(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m, slow := slowable(t, srv)
		must(t, srv.Create("/n", make([]byte, 500_000)))
		st := watch.Node(t.Context(), m, "/n")
		next(t, st)
		slow.Store(true)
		must(t, srv.Set("/n", make([]byte, 400_000)))
		time.Sleep(time.Minute)
		slow.Store(false)
		if state := next(t, st); len(state.Data) != 400_000 {
			t.Errorf("%d bytes, want 400000", len(state.Data))
		}
	})
}

// A Cache equals the server's tree after a time in which the network was so slow that every answer broke its
// connection. It reports no removals, and WaitSynced waits for it and has the reason.
func TestTreeAfterASlowNetwork(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m, slow := slowable(t, srv)
		const n = 2000
		must(t, srv.Create("/t", nil))
		must(t, srv.Create("/t/large", make([]byte, 500_000)))
		must(t, srv.Create("/t/dir", nil))
		for i := range n {
			must(t, srv.Create(fmt.Sprintf("/t/dir/%04d-%s", i, strings.Repeat("x", 200)), nil))
		}
		c := watch.Tree(t.Context(), m, "/t")
		must(t, c.WaitSynced(t.Context()))
		var removed atomic.Int32
		go func() {
			for ev, err := range c.All() {
				if err == nil && ev.Type == watch.Removed {
					removed.Add(1)
				}
			}
		}()
		slow.Store(true)
		must(t, srv.Set("/t/large", make([]byte, 400_000)))
		must(t, srv.Create("/t/dir/new", nil))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		err := c.WaitSynced(ctx)
		if session.ClassOf(err) != session.ClassCancelled || session.WaitReason(err) == nil {
			t.Errorf("WaitSynced while the network is slow: %v, want the end of its ctx with a reason", err)
		}
		if err := c.Err(); err != nil {
			t.Error(err)
		}
		slow.Store(false)
		must(t, c.WaitSynced(t.Context()))
		if st, _ := c.Get("/t/large"); len(st.Data) != 400_000 {
			t.Errorf("synced, and the Cache shows %d bytes, want 400000", len(st.Data))
		}
		if names, _ := c.Children("/t/dir"); len(names) != n+1 || removed.Load() > 0 {
			t.Errorf("synced, and the Cache shows %d of %d children, and has reported %d removals", len(names), n+1, removed.Load())
		}
		if lost := m.Stats().Lost; lost > 0 {
			t.Errorf("%d sessions were lost, so the test shows nothing", lost)
		}
	})
}
