package zksync_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// holdReady stops the next transaction of a session about ready before it is done.
func holdReady(srv *zksynctest.Server, id int64) (release func()) {
	until := make(chan struct{})
	srv.Inject(zksynctest.Fault{Session: id, Path: "/b/ready", Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Hold(until)})
	return func() { close(until) }
}

// A participant that has counted enough others opens the barrier only if none of them has gone since, in order or too
// late for the round before.
func TestDoubleBarrierSomebodyGivesUpWhileItOpens(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := double(t, srv, 3), double(t, srv, 3)
		m := srv.Connect(t)
		c := zksync.NewDoubleBarrier(m, "/b", 3)
		ctx, cancel := context.WithCancel(t.Context())
		first := entering(ctx, a)
		second := entering(t.Context(), b)
		release := holdReady(srv, live(t, m).ID())
		third := entering(t.Context(), c)
		cancel()
		wantCount(t, <-first, 3, 3, context.Canceled)
		release()
		time.Sleep(2 * time.Minute)
		pending(t, "Enter of two of three", second)
		pending(t, "Enter of two of three", third)
		mustEnter(t, a)
		mustEnd(t, "Enter", second, nil)
		mustEnd(t, "Enter", third, nil)
	})
}

// A participant that gives up while the barrier opens is either inside or not counted.
func TestDoubleBarrierOpensWhileSomebodyGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
		ctx, cancel := context.WithCancel(t.Context())
		in := entering(ctx, a)
		// It has seen that there is no ready, and is about to go.
		until := make(chan struct{})
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/b/_c_*", Op: zkserver.OpMulti, Do: zksynctest.Hold(until)})
		cancel()
		synctest.Wait()
		mustEnter(t, b)
		close(until)
		mustEnd(t, "Enter", in, nil)
		out := leaving(t.Context(), b)
		pending(t, "Leave", out)
		mustLeave(t, a)
		mustEnd(t, "Leave", out, nil)
		wholeRound(t, srv, a, b)
	})
}

// A participant that has gone without an answer is not in the round that begins then.
func TestDoubleBarrierBeginsWhileSomebodyIsGoing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b, c := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2), double(t, srv, 2)
		ctx, cancel := context.WithCancel(t.Context())
		in := entering(ctx, a)
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/b/_c_*", Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
		srv.HangHandshake(true)
		cancel()
		synctest.Wait()
		pending(t, "Enter of one who gives up", in)
		other := entering(t.Context(), b)
		mustEnter(t, c)
		mustEnd(t, "Enter", other, nil)
		srv.HangHandshake(false)
		mustEnd(t, "Enter of one who gave up", in, context.Canceled)
		other = leaving(t.Context(), b)
		mustLeave(t, c)
		mustEnd(t, "Leave", other, nil)
		wholeRound(t, srv, a, b)
	})
}

// A participant that enters again is counted once, even if the outcome of its first Enter is unknown.
func TestDoubleBarrierEntersOnceAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Do: zksynctest.Drop})
		most := 0
		watched := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() {
			children, _ := srv.Children("/b")
			most = max(most, len(children))
		})})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := a.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Enter without an answer: %v", err)
		}
		again := entering(t.Context(), a)
		srv.Disconnect(live(t, m).ID())
		time.Sleep(time.Minute)
		pending(t, "Enter", again)
		if watched.Remove(); most != 1 {
			t.Errorf("%d were there at a time", most)
		}
		mustEnter(t, b)
		mustEnd(t, "Enter", again, nil)
	})
}

// A participant that has seen the barrier empty clears it only if no new round has begun since.
func TestDoubleBarrierClearsNoOtherRound(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		slow, quick := srv.Connect(t), srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(slow, "/b", 2), zksync.NewDoubleBarrier(quick, "/b", 2)
		c := double(t, srv, 2)
		in := entering(t.Context(), b)
		mustEnter(t, a)
		mustEnd(t, "Enter", in, nil)
		out := leaving(t.Context(), b)
		release := holdReady(srv, live(t, slow).ID())
		late := leaving(t.Context(), a)
		srv.Disconnect(live(t, quick).ID()) // so that it looks again
		mustEnd(t, "Leave", out, nil)
		in = entering(t.Context(), b)
		mustEnter(t, c)
		mustEnd(t, "Enter", in, nil)
		release()
		mustEnd(t, "Leave", late, nil)
		if _, open := srv.Get("/b/ready"); !open {
			t.Error("the ready of the next round is gone")
		}
		out = leaving(t.Context(), b)
		time.Sleep(2 * time.Minute)
		pending(t, "Leave", out)
		mustLeave(t, c)
		mustEnd(t, "Leave", out, nil)
		wantEmpty(t, srv)
	})
}

// A reason that is being looked up for the log while Enter returns does not race with
// Leave (participantWait: each call has its own; the race detector tells).
func TestDoubleBarrierReasonIsLookedUpDuringLeave(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zap.WarnLevel))
		mb, ma := srv.Connect(t, session.WithLogger(log)), srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(ma, "/b", 2), zksync.NewDoubleBarrier(mb, "/b", 2)
		in := make(chan error, 1)
		go func() { in <- b.Enter(t.Context()) }()
		time.Sleep(2900 * time.Millisecond) // the reason is logged after three seconds
		entered := make(chan error, 1)
		i := srv.Inject(zksynctest.Fault{Session: live(t, mb).ID(), Op: zkserver.OpGetData, Do: zksynctest.Call(func() {
			go func() { entered <- a.Enter(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
		})})
		select {
		case err := <-in:
			must(t, err)
		case <-time.After(time.Minute):
			t.Fatal("not entered", i.Count())
		}
		go b.Leave(context.Background())
		must(t, <-entered)
		must(t, a.Leave(t.Context()))
	})
}

// A participant that others have counted enters, even if a server has answered its requests with internal errors.
func TestDoubleBarrierEntersAfterAnInternalError(t *testing.T) {
	for name, fault := range map[string]zksynctest.Fault{
		"the look at ready": {Path: "/b/ready", Op: zkserver.OpExists, Nth: 2, Times: 2, Do: zksynctest.Error(-1)},
		"the join":          {Path: "/b*", Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Error(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
				fault.Session = live(t, m).ID()
				failed := srv.Inject(fault)
				in := entering(t.Context(), a)
				pending(t, "Enter", in)
				mustEnter(t, b)
				mustEnd(t, "Enter", in, nil)
				if failed.Count() == 0 {
					t.Error("the fault has not struck")
				}
				out := leaving(t.Context(), b)
				pending(t, "Leave", out)
				mustLeave(t, a)
				mustEnd(t, "Leave", out, nil)
				wholeRound(t, srv, a, b)
			})
		})
	}
}
