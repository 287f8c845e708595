package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Discard is repeated over lost connections until the znode is deleted.
func TestDiscardOverLostConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		const n = 500
		for i := range n {
			create(t, s, fmt.Sprintf("/x%d", i), 0)
		}
		srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Nth: 7, Times: 20, At: zkserver.BeforeCommit, Do: zkserver.Disconnect})
		srv.Inject(zkserver.Fault{Op: zkserver.OpDelete, Nth: 60, Times: 20, At: zkserver.BeforeReply, Do: zkserver.Disconnect})
		var gone []<-chan error
		for i := range n {
			gone = append(gone, s.Discard(fmt.Sprintf("/x%d", i)))
		}
		for i, done := range gone {
			<-done
			mustExist(t, srv, fmt.Sprintf("/x%d", i), false)
		}
	})
}

// Many creates that are cancelled while connections break leave no znode in the end.
func TestAbandonedCreatesUnderDisconnects(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		create(t, s, "/dir", 0)
		const n = 2000
		done := make(chan error)
		for i := range n {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
				defer cancel()
				path, err := s.CreateProtected(ctx, "/dir/x-", nil, zk.FlagEphemeralSequential)
				if err == nil {
					<-s.Discard(path)
				}
				done <- err
			}()
		}
		for op, at := range map[zkserver.OpCode]zkserver.Moment{
			zkserver.OpCreate: zkserver.BeforeReply, zkserver.OpDelete: zkserver.BeforeCommit,
			zkserver.OpGetChildren2: zkserver.BeforeReply, zkserver.OpSync: zkserver.BeforeReply,
		} {
			for i := range 10 {
				srv.Inject(zkserver.Fault{Op: op, Nth: 3 * i, At: at, Do: zkserver.Disconnect})
				srv.Inject(zkserver.Fault{Op: op, Nth: 4 * i, At: at, Do: zkserver.Delay(7 * time.Millisecond)})
			}
		}
		for range n {
			<-done
		}
		time.Sleep(time.Minute)
		if names := children(srv, "/dir"); len(names) > 0 {
			t.Errorf("%d znodes left behind", len(names))
		}
	})
}

// The channel of Discard is closed when the znode is gone, when the session is over, or when the server has refused
// the removal for good.
func TestDiscardEndsWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/p", 0)
		create(t, s, "/p/child", 0)
		<-s.Discard("/none") // is gone already
		<-s.Discard("/p")    // cannot be removed: not empty
		mustExist(t, srv, "/p", true)
		srv.Freeze()
		first, second := s.Discard("/p/child"), s.Discard("/p")
		synctest.Wait()
		srv.ExpireSession(s.ID())
		srv.Thaw()
		<-first
		<-second
		<-s.Done()
		<-s.Discard("/p")
		mustExist(t, srv, "/p/child", true)

		next := current(t, m)
		srv.Freeze()
		third := next.Discard("/p/child")
		m.Close()
		<-third
	})
}

// The removals of the janitor do not wait behind the limit of 1,024 abandoned requests.
func TestJanitorIsNotHeldUpByAbandonedRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three, session.WithTimeout(40*time.Second)))
		create(t, s, "/left", 0)
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, At: zkserver.BeforeReply, Do: zkserver.Drop, Times: -1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		const limit = 1024
		for range limit {
			go func() { _, _, err := s.Get(ctx, "/left"); done <- err }()
		}
		synctest.Wait()
		cancel()
		for range limit {
			mustBe(t, <-done, context.Canceled)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustBe(t, s.Sync(ctx, "/"), context.DeadlineExceeded)
		within(t, 0, "Discard", func() { <-s.Discard("/left") })
		mustExist(t, srv, "/left", false)
	})
}

// Discard and DiscardOwn of a path above the limit of requests send nothing, and end at once.
func TestDiscardOfAPathAboveTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		path := "/" + strings.Repeat("x", 2<<20)
		for name, done := range map[string]<-chan error{"Discard": s.Discard(path), "DiscardOwn": s.DiscardOwn(path, nil)} {
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Errorf("%s has not ended in a minute", name)
			}
		}
		if n := m.Stats().Connections; n != 1 {
			t.Errorf("%d connections, want that the first one was not broken", n)
		}
	})
}
