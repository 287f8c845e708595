package zksync_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

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

// When Leave returns, also with an error, its participant has left or is about to leave, even if a server has answered
// the deletion and the read after it with errors.
func TestDoubleBarrierLeavesAfterTwoFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		first zksynctest.Action // of the deletion
		want  error
	}{
		{"two internal errors", zksynctest.Error(-1), nil},
		{"a break and an internal error", zksynctest.Disconnect, nil},
		{"a refusal", zksynctest.Error(-102), zk.ErrNoAuth},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
				in := entering(t.Context(), b)
				mustEnter(t, a)
				mustEnd(t, "Enter", in, nil)
				out := leaving(t.Context(), b)
				id := live(t, m).ID()
				srv.Inject(zksynctest.Fault{Session: id, Path: "/b/_c_*", Op: zkserver.OpMulti, Do: c.first})
				srv.Inject(zksynctest.Fault{Session: id, Path: "/b/_c_*", Op: zkserver.OpGetData, Do: zksynctest.Error(-1)})
				if err := a.Leave(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("Leave: %v, want %v", err, c.want)
				}
				time.Sleep(time.Minute)
				mustEnd(t, "Leave of the other participant", out, nil)
			})
		})
	}
}

// The CountError of a Leave counts the participants alone, also for the participant that has opened the barrier.
func TestDoubleBarrierCountErrorOfLeave(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := double(t, srv, 2), zksync.NewDoubleBarrier(m, "/b", 2)
		in := entering(t.Context(), a)
		mustEnter(t, b) // b opens the barrier, since it comes last
		mustEnd(t, "Enter", in, nil)
		must(t, srv.ExpireSession(live(t, m).ID()))
		wantCount(t, b.Leave(t.Context()), 2, 2, zksync.ErrLost)
	})
}
