package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An observer whose server lists a leader and does not show it does not ask again and
// again without a pause. To see this test fail, drop the pause of Election.observe.
func TestObserveOfContradictoryAnswers(t *testing.T) {
	for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpGetChildren2} {
		t.Run(op.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				leader := zksync.NewElection(srv.Connect(t), path, zksync.WithID("a"))
				_, err := leader.Campaign(t.Context())
				must(t, err)
				const most, patience = 200, time.Minute
				m := srv.Connect(t)
				asked := 0
				lie := srv.Inject(zksynctest.Fault{
					Session: live(t, m).ID(), Op: op, Times: -1, Do: zksynctest.Error(-101),
					// A loop that spins stops the clock of the bubble.
					Match: func(zkserver.Op) bool { asked++; return asked < 10*most },
				})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				observed := zksync.NewElection(m, path).Observe(ctx)
				time.AfterFunc(patience/2, lie.Remove)
				for c := range observed.Events() {
					if c.ID != "a" {
						t.Errorf("observed %+v, want a", c)
					}
				}
				if n := lie.Count(); n > most {
					t.Errorf("%d requests in %v", n, patience/2)
				}
			})
		})
	}
}
