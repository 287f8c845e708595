package session_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// everyCall has each method that blocks.
var everyCall = map[string]func(context.Context, *session.Manager, *session.Session) error{
	"Create": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.Create(ctx, "/x", nil, zk.FlagEphemeral)
		return err
	},
	"CreateProtected": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.CreateProtected(ctx, "/x-", nil, zk.FlagEphemeralSequential)
		return err
	},
	"MultiProtected": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, err := s.MultiProtected(ctx, &zk.CreateRequest{Path: session.Protect("/x-"), Flags: zk.FlagEphemeralSequential})
		return err
	},
	"MakeDir": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		return s.MakeDir(ctx, "/dir/dir")
	},
	"Get": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, err := s.Get(ctx, "/node")
		return err
	},
	"Exists": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, err := s.Exists(ctx, "/node")
		return err
	},
	"Children": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, err := s.Children(ctx, "/node")
		return err
	},
	"GetW": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.GetW(ctx, "/node")
		return err
	},
	"ExistsW": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.ExistsW(ctx, "/node")
		return err
	},
	"ChildrenW": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.ChildrenW(ctx, "/node")
		return err
	},
	"WatchData": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.WatchData(ctx, "/node")
		return err
	},
	"WatchExists": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.WatchExists(ctx, "/node")
		return err
	},
	"WatchChildren": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, _, _, err := s.WatchChildren(ctx, "/node")
		return err
	},
	"Set": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.Set(ctx, "/node", nil, -1)
		return err
	},
	"Set with version": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.Set(ctx, "/node", nil, 0)
		return err
	},
	"Delete": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		return s.Delete(ctx, "/node", 0)
	},
	"Multi": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/node"})
		return err
	},
	"Sync": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		return s.Sync(ctx, "/")
	},
	"SyncQuorum": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		return s.SyncQuorum(ctx, "/node")
	},
	"MultiRead": func(ctx context.Context, _ *session.Manager, s *session.Session) error {
		_, err := s.MultiRead(ctx, session.ReadData("/node"), session.ReadChildren("/node"))
		return err
	},
	"Do": func(ctx context.Context, m *session.Manager, _ *session.Session) error {
		return m.Do(ctx, func(ctx context.Context, s *session.Session) error { return s.Sync(ctx, "/") })
	},
	"Retry": func(ctx context.Context, m *session.Manager, _ *session.Session) error {
		return m.Retry(ctx, func(s *session.Session) error { return s.Sync(ctx, "/") })
	},
}

// troubles has each state of the network and the server in which no answer arrives.
var troubles = map[string]func(srv *zksynctest.Server, id int64){
	"the handshake hangs": func(srv *zksynctest.Server, id int64) {
		srv.HangHandshake(true)
		srv.Disconnect(id)
	},
	"nothing is reachable":    func(srv *zksynctest.Server, _ int64) { srv.Stop() },
	"the server is frozen":    func(srv *zksynctest.Server, _ int64) { srv.Freeze() },
	"the client is cut off":   func(srv *zksynctest.Server, id int64) { srv.Partition(id) },
	"the follower is cut off": func(srv *zksynctest.Server, id int64) { srv.CutFromLeader(id, true) },
	"replies get lost": func(srv *zksynctest.Server, _ int64) {
		srv.Inject(zkserver.Fault{At: zkserver.BeforeReply, Do: zkserver.Drop, Times: -1})
	},
}

// Every call that takes a context returns when the context is done, regardless of the network.
func TestEveryCallReturnsWithItsContext(t *testing.T) {
	for trouble, begin := range troubles {
		t.Run(trouble, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				s := current(t, m)
				create(t, s, "/node", 0)
				begin(srv, s.ID())
				synctest.Wait()
				const patience = 700 * time.Millisecond
				cause := errors.New("the caller has gone")
				results := make(chan string)
				start := time.Now()
				for name, call := range everyCall {
					go func() {
						ctx, cancel := context.WithTimeoutCause(t.Context(), patience, cause)
						defer cancel()
						err := call(ctx, m, s)
						// A follower that is cut off continues to answer reads.
						if took := time.Since(start); took > patience {
							results <- fmt.Sprintf("%s returned after %v, want %v", name, took, patience)
						} else if err != nil && !(errors.Is(err, context.DeadlineExceeded) && errors.Is(err, cause)) {
							results <- fmt.Sprintf("%s: error %v, want one that is DeadlineExceeded and the cause", name, err)
						} else {
							results <- ""
						}
					}()
				}
				for range everyCall {
					if msg := <-results; msg != "" {
						t.Error(msg)
					}
				}
				// Goroutines that outlive the test would end the bubble with a panic.
				within(t, timeout, "Close", func() { m.Close() })
			})
		})
	}
}

// Calls return with their ctx or before, also while the Manager closes.
func TestCallsReturnWhileTheManagerCloses(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/node", 0)
		srv.Freeze()
		const patience = 2 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		results := make(chan error)
		for _, call := range everyCall {
			go func() { results <- call(ctx, m, s) }()
		}
		synctest.Wait()
		go m.Close()
		synctest.Wait()
		for name, call := range everyCall {
			within(t, 0, name, func() { mustBe(t, call(ctx, m, s), session.ErrClosed, zk.ErrClosing) })
		}
		within(t, patience, "the calls under way", func() {
			for range everyCall {
				if err := <-results; err == nil {
					t.Error("a call has succeeded on a frozen server")
				}
			}
		})
		<-m.Done()
	})
}

// A call whose ctx has ended is not sent.
func TestACallWithAnEndedContextIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		srv.ResetOps()
		for name, call := range everyCall {
			if err := call(ctx, m, s); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v, want context.Canceled", name, err)
			}
		}
		if n := len(srv.Ops()); n != 0 {
			t.Errorf("%d requests, want none", n)
		}
	})
}

// At most 1,024 abandoned requests are under way: a further call waits with its ctx before it is sent.
func TestAbandonedRequestsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const limit = 1024
		m := connect(t, srv, three, session.WithTimeout(40*time.Second))
		s := current(t, m)
		release := make(chan struct{})
		srv.Inject(zkserver.Fault{Op: zkserver.OpExists, At: zkserver.BeforeCommit, Do: zkserver.Hold(release)})
		ctx, cancel := context.WithCancel(t.Context())
		const more = 100
		gone := make(chan error)
		for range limit {
			go func() { _, _, err := s.Exists(ctx, "/x"); gone <- err }()
		}
		synctest.Wait()
		cancel()
		for range limit {
			mustBe(t, <-gone, context.Canceled)
		}
		// These calls wait without being sent, so the server never sees a request of them.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range more {
			go func() { _, err := s.Create(ctx, "/unsent-", nil, zk.FlagSequence); gone <- err }()
		}
		for range more {
			mustBe(t, <-gone, context.DeadlineExceeded)
		}
		close(release)
		if _, _, err := s.Exists(t.Context(), "/x"); err != nil {
			t.Errorf("after the abandoned requests were answered: %v", err)
		}
		synctest.Wait()
		for _, op := range srv.Ops() {
			if op.Path == "/unsent-" {
				t.Fatalf("a call was issued beyond %d abandoned ones: %+v", limit, op)
			}
		}
	})
}
