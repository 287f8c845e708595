package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A candidate of LayoutEphemeral that may not read the leader's znode, for good or at one look, removes its own znode after a
// lost answer, after a refusal, and after a Campaign whose ctx ends, and the next candidate leads.
func TestUnreadableLeaderIsRemoved(t *testing.T) {
	noAuth := zksynctest.Error(int32(zkserver.ErrNoAuth))
	resign := func(fault zksynctest.Fault) func(t *testing.T, srv *zksynctest.Server, e *zksync.Election) {
		return func(t *testing.T, srv *zksynctest.Server, e *zksync.Election) {
			_, err := e.Campaign(within(t, time.Minute))
			must(t, err)
			fault.Op, fault.Path = zkserver.OpDelete, "/leader"
			srv.Inject(fault)
			_ = e.Resign() // reports the refusal
		}
	}
	endings := map[string]func(t *testing.T, srv *zksynctest.Server, e *zksync.Election){
		"lost request":    resign(zksynctest.Fault{Do: zksynctest.Disconnect}),
		"lost answer":     resign(zksynctest.Fault{At: zksynctest.AfterCommit, Do: zksynctest.Disconnect}),
		"refused removal": resign(zksynctest.Fault{Do: noAuth}),
		"cancelled Campaign": func(t *testing.T, srv *zksynctest.Server, e *zksync.Election) {
			answer := make(chan struct{})
			created := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/leader", At: zksynctest.BeforeReply, Do: zksynctest.Hold(answer)})
			ctx, cancel := context.WithCancel(t.Context())
			done := start(func() error { _, err := e.Campaign(ctx); return err })
			pending(t, "Campaign", done)
			if created.Count() != 1 {
				t.Error("Campaign has created no znode")
			}
			cancel()
			if err := <-done; err == nil {
				t.Error("Campaign has returned no error")
			}
			close(answer)
		},
	}
	readers := map[string]func(srv *zksynctest.Server) session.Option{
		"without READ": func(*zksynctest.Server) session.Option {
			return session.WithACL(zk.WorldACL(zk.PermAll &^ zk.PermRead)...)
		},
		"one look refused": func(srv *zksynctest.Server) session.Option {
			srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/leader", Do: noAuth})
			return session.WithACL(zk.WorldACL(zk.PermAll)...)
		},
	}
	for name, end := range endings {
		for reader, may := range readers {
			t.Run(name+", "+reader, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t, may(srv))
					end(t, srv, zksync.NewElection(m, "/leader", zksync.WithLayout(zksync.LayoutEphemeral)))
					time.Sleep(time.Minute) // a candidate that may not read the leader cannot wait behind it
					next := zksync.NewElection(srv.Connect(t), "/leader", zksync.WithLayout(zksync.LayoutEphemeral))
					if _, err := next.Campaign(within(t, time.Minute)); err != nil {
						t.Error("the next candidate:", err)
					}
					if live(t, m).Err() != nil {
						t.Error("the session of the first candidate has ended")
					}
				})
			})
		}
	}
}
