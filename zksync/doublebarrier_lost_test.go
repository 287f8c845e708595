package zksync_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A lost answer at any transaction of a round only makes Enter and Leave wait longer.
func TestDoubleBarrierLostAnswers(t *testing.T) {
	for _, id := range []string{"", "a"} {
		for _, action := range []zksynctest.Action{zksynctest.Disconnect, zksynctest.Drop} {
			for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
				step := 1
				for ; answerLost(t, id, step, 1, at, action) && !t.Failed(); step++ {
				}
				// join, join, open, leave, leave, clear
				if step <= 6 {
					t.Errorf("%d transactions, expected 6", step-1)
				}
				answerLost(t, id, 1, 20, at, action) // one after the other
			}
		}
	}
}

func answerLost(t *testing.T, id string, step, times int, at zksynctest.Moment, action zksynctest.Action) (hit bool) {
	t.Run(fmt.Sprintf("id=%q %v %v of transaction %d, %d times", id, action, at, step, times), func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var opts []zksync.DoubleBarrierOption
			if id != "" {
				opts = append(opts, zksync.WithID(id))
			}
			a, b := double(t, srv, 2, opts...), double(t, srv, 2)
			lost := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/b", Nth: step, Times: times, At: at, Do: action})
			if action.String() == zksynctest.Drop.String() {
				// The client notices when the connection ends.
				stop := make(chan struct{})
				defer close(stop)
				go func() {
					for {
						select {
						case <-time.After(20 * time.Second):
						case <-stop:
							return
						}
						for _, info := range srv.Sessions() {
							srv.Disconnect(info.ID)
						}
					}
				}()
			}
			quickRound(t, srv, a, b)
			hit = lost.Count() > 0
			lost.Remove()
			wholeRound(t, srv, a, b)
		})
	})
	return hit
}

// quickRound is wholeRound without a check of the participants that wait meanwhile.
func quickRound(t *testing.T, srv *zksynctest.Server, a, b *zksync.DoubleBarrier) {
	in := entering(t.Context(), a)
	mustEnter(t, b)
	mustEnd(t, "Enter", in, nil)
	out := leaving(t.Context(), a)
	synctest.Wait()
	mustLeave(t, b)
	mustEnd(t, "Leave", out, nil)
	wantEmpty(t, srv)
}
