package zksync_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A candidate of LayoutEphemeral that may not read the leader's znode, on servers before 3.8.4 or at one look, removes its own
// znode after a lost answer and after a refusal, and the next candidate leads.
func TestUnreadableLeaderIsRemoved(t *testing.T) {
	noAuth := zksynctest.Error(zkserver.ErrNoAuth)
	removals := map[string]zksynctest.Fault{
		"lost request": {Do: zksynctest.Disconnect},
		"lost answer":  {At: zksynctest.AfterCommit, Do: zksynctest.Disconnect},
		"refusal":      {Do: noAuth},
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
	for name, fault := range removals {
		for reader, may := range readers {
			t.Run(name+", "+reader, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t, may(srv))
					e := zksync.NewElection(m, "/leader", zksync.WithLayout(zksync.LayoutEphemeral))
					_, err := e.Campaign(within(t, time.Minute))
					must(t, err)
					fault.Op, fault.Path = zkserver.OpDelete, "/leader"
					srv.Inject(fault)
					_ = e.Resign()          // reports a refusal
					time.Sleep(time.Minute) // a candidate that may not read the leader cannot wait behind it
					next := zksync.NewElection(srv.Connect(t), "/leader", zksync.WithLayout(zksync.LayoutEphemeral))
					if _, err := next.Campaign(within(t, time.Minute)); err != nil {
						t.Error("the next candidate:", err)
					}
					if live(t, m).Err() != nil {
						t.Error("the session of the first candidate has ended")
					}
				}, zksynctest.WithConfig(zkserver.Config{Compat38: true}))
			})
		}
	}
}
