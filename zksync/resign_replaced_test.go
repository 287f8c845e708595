package zksync_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Resign with LayoutEphemeral leaves the znode of the next leader, also if that znode has the same version, when the
// server has refused the removal for a reason that passes, or the answer was lost.
func TestResignLeavesALeaderOfTheSameVersion(t *testing.T) {
	for _, throttled := range []bool{false, true} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			other := live(t, srv.Connect(t))
			e := zksync.NewElection(srv.Connect(t), master, byEphemeral)
			_, err := e.Campaign(t.Context())
			must(t, err)
			_, stat, err := other.Get(t.Context(), master)
			must(t, err)
			removal := zksynctest.Fault{Path: master, At: zksynctest.AfterCommit, Match: func(op zkserver.Op) bool {
				return op.Session != other.ID() && (op.Code == zkserver.OpDelete || op.Code == zkserver.OpMulti)
			}}
			then := zksynctest.Disconnect
			if throttled {
				removal.At, then = zksynctest.BeforeCommit, zksynctest.Error(-127)
			}
			removal.Do = zksynctest.Call(func() {
				if throttled {
					must(t, srv.Delete(master))
				}
				_, err := other.Create(t.Context(), master, []byte("next"), zk.FlagEphemeral)
				must(t, err)
				for version := range stat.Version {
					_, err := other.Set(t.Context(), master, []byte("next"), version)
					must(t, err)
				}
			})
			srv.Inject(removal)
			removal.Do = then
			srv.Inject(removal)
			// After a lost answer Resign does not know who has removed the znode.
			if err := e.Resign(); throttled != errors.Is(err, zksync.ErrRemoved) || !throttled && err != nil {
				t.Errorf("throttled %v: Resign: %v", throttled, err)
			}
			time.Sleep(time.Minute)
			if data, _ := srv.Get(master); string(data) != "next" {
				t.Errorf("throttled %v: the leader's znode has %q, want the data of the next leader", throttled, data)
			}
		})
	}
}
