package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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

// A leader with LayoutEphemeral is told that another client has removed its znode, although the ACL of the znode hides
// that from it and the znode of the next leader has the same path.
func TestLeaderLearnsOfAHiddenRemoval(t *testing.T) {
	for _, perms := range []int32{0, zk.PermAll &^ zk.PermRead} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			lead, err := zksync.NewElection(m, "/leader", byEphemeral).Campaign(t.Context())
			must(t, err)
			time.Sleep(time.Second)
			must(t, srv.SetACL("/leader", []zkserver.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}))
			must(t, srv.Delete("/leader"))
			next, err := zksync.NewElection(srv.Connect(t), "/leader", byEphemeral).Campaign(t.Context())
			must(t, err)
			select {
			case <-lead.Done():
				if cause := context.Cause(lead); !errors.Is(cause, session.ErrRemoved) {
					t.Errorf("the cause is %v, want ErrRemoved", cause)
				}
			case <-time.After(live(t, m).Timeout()):
				t.Errorf("with the permissions %d, the first leader was not told in a session timeout", perms)
			}
			if next.Err() != nil {
				t.Error("the next leader:", context.Cause(next))
			}
		})
	}
}

// A leader with LayoutEphemeral whose znode another client has removed does not lead by the znode of an Ephemeral of the same
// Manager that takes its place.
func TestLeaderDoesNotTakeAnEphemeralForItsZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		lead, err := zksync.NewElection(m, "/leader", byEphemeral).Campaign(t.Context())
		must(t, err)
		go m.Ephemeral(t.Context(), "/leader", []byte("x")) // waits for the znode of the leader
		synctest.Wait()
		must(t, srv.Delete("/leader"))
		select {
		case <-lead.Done():
			if cause := context.Cause(lead); !errors.Is(cause, session.ErrRemoved) {
				t.Errorf("the cause is %v, want ErrRemoved", cause)
			}
		case <-time.After(live(t, m).Timeout()):
			t.Error("leads by the znode of an Ephemeral")
		}
	})
}
