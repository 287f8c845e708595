package zksync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// entering starts Enter in the background. In a bubble it is waiting, or done,
// when entering returns.
func entering(ctx context.Context, b *zksync.DoubleBarrier) <-chan error {
	return started(ctx, b.Enter)
}

func leaving(ctx context.Context, b *zksync.DoubleBarrier) <-chan error {
	return started(ctx, b.Leave)
}

func started(ctx context.Context, do func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Hour)
		defer cancel()
		done <- do(ctx)
	}()
	synctest.Wait()
	return done
}

func mustEnter(t testing.TB, b *zksync.DoubleBarrier) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Enter(ctx); err != nil {
		t.Fatal("Enter:", err)
	}
}

func mustLeave(t testing.TB, b *zksync.DoubleBarrier) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Leave(ctx); err != nil {
		t.Error("Leave:", err)
	}
}

// mustEnd checks that a call in the background has ended with err, nil included.
func mustEnd(t testing.TB, what string, done <-chan error, want error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	case <-time.After(patience):
		t.Fatalf("%s has not returned", what)
	}
}

// wholeRound takes participants through a round, as a proof that the barrier is
// well, and that nothing of earlier ones counts.
func wholeRound(t testing.TB, srv *zksynctest.Server, all ...*zksync.DoubleBarrier) {
	t.Helper()
	last := len(all) - 1
	var in, out []<-chan error
	for _, b := range all[:last] {
		done := entering(t.Context(), b)
		time.Sleep(time.Minute)
		pending(t, "Enter before the last has come", done)
		in = append(in, done)
	}
	mustEnter(t, all[last])
	for _, done := range in {
		mustEnd(t, "Enter", done, nil)
	}
	for _, b := range all[:last] {
		done := leaving(t.Context(), b)
		pending(t, "Leave before the last has gone", done)
		out = append(out, done)
	}
	mustLeave(t, all[last])
	for _, done := range out {
		mustEnd(t, "Leave", done, nil)
	}
	wantEmpty(t, srv)
}

func wantEmpty(t testing.TB, srv *zksynctest.Server) {
	t.Helper()
	synctest.Wait()
	if left, _ := srv.Children("/b"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func double(t testing.TB, srv *zksynctest.Server, n int, opts ...zksync.DoubleBarrierOption) *zksync.DoubleBarrier {
	return zksync.NewDoubleBarrier(srv.Connect(t), "/b", n, opts...)
}

// Enter returns when n participants have come, Leave when all have gone, and the next round begins at once.
func TestDoubleBarrier(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b, c := double(t, srv, 3), double(t, srv, 3), double(t, srv, 3)
		for range 3 {
			wholeRound(t, srv, a, b, c)
		}
		wholeRound(t, srv, double(t, srv, 1))
	})
}

// A participant that comes after the barrier has opened waits for the next round.
func TestDoubleBarrierLateParticipantsWaitForTheNextRound(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b, c, d := double(t, srv, 2), double(t, srv, 2), double(t, srv, 2), double(t, srv, 2)
		in := entering(t.Context(), a)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		late, later := entering(t.Context(), c), entering(t.Context(), d)
		out := leaving(t.Context(), a)
		time.Sleep(2 * time.Minute)
		pending(t, "the Enter of one who came late", late)
		pending(t, "Leave of one who left early", out)
		mustLeave(t, b)
		mustEnd(t, "Leave", out, nil)
		mustEnd(t, "Enter", late, nil)
		mustEnd(t, "Enter", later, nil)
		out = leaving(t.Context(), c)
		mustLeave(t, d)
		mustEnd(t, "Leave", out, nil)
		wantEmpty(t, srv)
	})
}

// A participant whose znode is created after the round has begun is not in the round, and does not delay its end.
func TestDoubleBarrierOpensWhileAnotherJoins(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := double(t, srv, 2), double(t, srv, 2)
		m := srv.Connect(t)
		c := zksync.NewDoubleBarrier(m, "/b", 2)
		in := entering(t.Context(), a)
		open := make(chan struct{})
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: "/b/_c_*", At: zksynctest.BeforeCommit, Do: zksynctest.Hold(open)})
		late := entering(t.Context(), c)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		close(open)
		synctest.Wait()
		pending(t, "the Enter of one who was too late", late)
		out := leaving(t.Context(), a)
		mustLeave(t, b)
		mustEnd(t, "Leave", out, nil)
		mustEnter(t, a)
		mustEnd(t, "Enter", late, nil)
	})
}

// All participants that come before the barrier opens are in the round, also more than n.
func TestDoubleBarrierWithMoreThanItsSize(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b, c := double(t, srv, 2), double(t, srv, 2), double(t, srv, 2)
		in := entering(t.Context(), a)
		hold := make(chan struct{})
		srv.Inject(zksynctest.Fault{Path: "/b/ready", Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Hold(hold)})
		second, third := entering(t.Context(), b), entering(t.Context(), c)
		close(hold)
		for _, done := range []<-chan error{in, second, third} {
			mustEnd(t, "Enter", done, nil)
		}
		outs := []<-chan error{leaving(t.Context(), a), leaving(t.Context(), b)}
		time.Sleep(2 * time.Minute)
		pending(t, "Leave while a third is inside", outs[0])
		mustLeave(t, c)
		for _, done := range outs {
			mustEnd(t, "Leave", done, nil)
		}
		wantEmpty(t, srv)
	})
}

// Do leaves when its function returns or panics, and its context ends before the other participants can go on without
// it.
func TestDoubleBarrierDo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
		var held context.Context
		did := started(t.Context(), func(ctx context.Context) error {
			return a.Do(ctx, func(ctx context.Context) error { held = ctx; return errEnough })
		})
		pending(t, "Do", did)
		mustEnter(t, b)
		synctest.Wait()
		pending(t, "Do before all have left", did)
		mustLeave(t, b)
		if err := <-did; err != errEnough {
			t.Errorf("Do returned %v", err)
		}
		if err := context.Cause(held); !errors.Is(err, zksync.ErrReleased) {
			t.Errorf("the context of Do ended with %v", err)
		}

		// A panic takes it out as well, without waiting for anybody.
		in := entering(t.Context(), b)
		func() {
			defer func() {
				if recover() != errEnough {
					t.Error("no panic")
				}
			}()
			a.Do(t.Context(), func(context.Context) error { panic(errEnough) })
		}()
		mustEnd(t, "Enter", in, nil)
		mustLeave(t, b)
		wholeRound(t, srv, a, b)

		// A loss is told while fn runs, and again by Do.
		in = entering(t.Context(), b)
		err := a.Do(t.Context(), func(ctx context.Context) error {
			mustEnd(t, "Enter", in, nil)
			srv.Partition(live(t, m).ID())
			out := leaving(t.Context(), b)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, zksync.ErrLost) {
				t.Errorf("the context of Do ended with %v", cause)
			}
			pending(t, "Leave of the other one", out)
			mustEnd(t, "Leave of the other one", out, nil)
			return errEnough
		})
		if !errors.Is(err, zksync.ErrLost) || !errors.Is(err, errEnough) {
			t.Errorf("Do after a loss: %v", err)
		}
		wantEmpty(t, srv)
	})
}

// WithMaxWait bounds Enter with ErrMaxWait and a CountError, and does not bound the stay.
func TestDoubleBarrierMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := double(t, srv, 2, zksync.WithMaxWait(5*time.Minute)), double(t, srv, 2)
		start := time.Now()
		err := a.Enter(t.Context())
		if !errors.Is(err, zksync.ErrMaxWait) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if want := "enter /b: 1 of 2 were there: "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q, want it to begin with %q", err, want)
		}
		mustEnd(t, "Enter", func() <-chan error { in := entering(t.Context(), b); mustEnter(t, a); return in }(), nil)
		out := leaving(t.Context(), a)
		time.Sleep(20 * time.Minute)
		pending(t, "Leave, which is not bounded", out)
		mustLeave(t, b)
		mustEnd(t, "Leave", out, nil)
	})
}
