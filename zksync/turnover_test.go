package zksync_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Leader names a leader while there are candidates, also if the first one goes between the list and the read again and
// again.
func TestLeaderWhileLeadersGo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 12 {
			go func() { _, _ = zksync.NewElection(srv.Connect(t), path).Campaign(ctx) }()
			synctest.Wait()
		}
		gone := 0
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetData, Path: path + "/*", Times: 8, Do: zksynctest.Call(func() {
			names, _ := srv.Children(path)
			first := slices.MinFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
			must(t, srv.Delete(path+"/"+first))
			gone++
		})})
		_, err := zksync.NewElection(m, path).Leader(t.Context())
		must(t, err)
		if gone != 8 {
			t.Errorf("%d leaders went during the call, want 8", gone)
		}
	})
}

// A Join that waits for its id fails when the servers refuse the creation at the time at which the id is free, also if the
// session was lost before that.
func TestJoinThatIsRefusedAfterItsWait(t *testing.T) {
	for _, lost := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			first, err := zksync.NewGroup(srv.Connect(t), "/g").Join(t.Context(), "x", nil)
			must(t, err)
			m := srv.Connect(t)
			id := live(t, m).ID()
			done := start(func() error {
				_, err := zksync.NewGroup(m, "/g", zksync.WithIDWait()).Join(t.Context(), "x", nil)
				return err
			})
			synctest.Wait()
			srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Path: "/g/x", Times: -1, Do: zksynctest.Error(zkserver.ErrNoAuth)})
			if lost {
				srv.Partition(id)
				must(t, srv.ExpireSession(id))
			}
			must(t, first.Leave())
			<-time.After(time.Minute) // of the bubble
			srv.Heal(id)
			<-time.After(time.Minute)
			select {
			case err := <-done:
				if !errors.Is(err, zk.ErrNoAuth) || session.WaitReason(err) != nil {
					t.Errorf("Join: %v, want ErrNoAuth", err)
				}
			default:
				t.Error("Join still waits")
			}
		})
	}
}
