package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"
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

// Internal errors of a server do not end Observe, which reports the next change of leader after them.
func TestObserveContinuesAfterInternalErrors(t *testing.T) {
	for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutEphemeral} {
		t.Run(layout.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m, o := srv.Connect(t), srv.Connect(t)
				leader := zksync.NewElection(m, "/stage", zksync.WithLayout(layout), zksync.WithID("a"))
				_, err := leader.Campaign(t.Context())
				must(t, err)
				const errors, most = 20, 100
				srv.Inject(zksynctest.Fault{Session: live(t, o).ID(), Path: "/stage*", Times: errors, Do: zksynctest.Error(-1)})
				srv.ResetOps()
				observed := zksync.NewElection(o, "/stage", zksync.WithLayout(layout)).Observe(t.Context())
				time.Sleep(time.Minute)
				if c, ok := <-observed.Events(); !ok || c.ID != "a" {
					t.Fatalf("observed %+v, %v, want a: %v", c, ok, observed.Err())
				}
				srv.Inject(zksynctest.Fault{Session: live(t, o).ID(), Path: "/stage*", Do: zksynctest.Error(-1)})
				must(t, leader.Resign())
				time.Sleep(time.Minute)
				synctest.Wait()
				select {
				case c, ok := <-observed.Events():
					if !ok || c.ID != "" {
						t.Errorf("observed %+v, %v, want no leader: %v", c, ok, observed.Err())
					}
				default:
					t.Error("the observer has not noticed that the leader has resigned")
				}
				if n := len(requests(srv, live(t, o).ID())); n > most {
					t.Errorf("%d requests over %d errors", n, errors+1)
				}
			})
		})
	}
}
