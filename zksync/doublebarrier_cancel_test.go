package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A passage is a way in which Enter can go, whose every step is struck in turn.
type passage struct {
	name  string
	steps int // that it has at least
	// before prepares; a comes before the participant that is struck, and b after it.
	before func(t *testing.T, srv *zksynctest.Server, a, b *zksync.DoubleBarrier) (others []<-chan error)
	after  func(t *testing.T, srv *zksynctest.Server, a, b *zksync.DoubleBarrier)
}

var passages = []passage{
	{name: "the first to come", steps: 5},
	{
		name: "the last to come", steps: 5,
		before: func(t *testing.T, srv *zksynctest.Server, a, _ *zksync.DoubleBarrier) []<-chan error {
			return []<-chan error{entering(t.Context(), a)}
		},
	},
	{
		name: "while a round goes on", steps: 6,
		before: func(t *testing.T, srv *zksynctest.Server, a, b *zksync.DoubleBarrier) []<-chan error {
			in := entering(t.Context(), a)
			mustEnter(t, b)
			mustEnd(t, "Enter", in, nil)
			return nil
		},
		after: func(t *testing.T, srv *zksynctest.Server, a, b *zksync.DoubleBarrier) {
			out := leaving(t.Context(), a)
			mustLeave(t, b)
			mustEnd(t, "Leave", out, nil)
		},
	},
}

// An Enter that is cancelled at any step is taken back or is inside, and nothing in between.
func TestDoubleBarrierEnterCancelledAtEveryStep(t *testing.T) {
	for _, c := range passages {
		for name, faults := range strikes {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch} {
					if at == zksynctest.OnWatch && name == noAnswer {
						continue // no connection loses an event and lives on
					}
					step := 1
					for ; c.struck(t, step, at, faults, name == noAnswer) && !t.Failed(); step++ {
					}
					if at != zksynctest.OnWatch && step <= c.steps {
						t.Errorf("%v: %d steps, expected %d", at, step-1, c.steps)
					}
				}
			})
		}
	}
}

// cancelAt injects a cancellation, with the other faults, into a step of the session, and returns a function that
// reports whether it struck and ends it.
func cancelAt(srv *zksynctest.Server, id int64, step int, at zksynctest.Moment, cancel context.CancelCauseFunc, faults []zksynctest.Action) func() bool {
	var injected []*zksynctest.Injection
	for _, action := range append([]zksynctest.Action{zksynctest.Call(func() { cancel(errEnough) })}, faults...) {
		injected = append(injected, srv.Inject(zksynctest.Fault{Session: id, Nth: step, At: at, Do: action}))
	}
	return func() bool {
		for _, inj := range injected {
			inj.Remove()
		}
		// The loss of a dropped frame shows when the connection ends.
		srv.Disconnect(id)
		time.Sleep(4 * time.Second)
		return injected[0].Count() > 0
	}
}

func (c passage) struck(t *testing.T, step int, at zksynctest.Moment, faults []zksynctest.Action, silent bool) (hit bool) {
	t.Run(fmt.Sprintf("step %d %v", step, at), func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			one, a, b := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2), double(t, srv, 2)
			var others []<-chan error
			if c.before != nil {
				others = c.before(t, srv, a, b)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			end := cancelAt(srv, live(t, m).ID(), step, at, cancel, faults)
			done := make(chan error, 1)
			go func() { done <- one.Enter(ctx) }()
			synctest.Wait()
			if c.after != nil {
				c.after(t, srv, a, b)
			}
			if len(others) == 0 {
				// Somebody to enter with, if it goes on at all.
				time.Sleep(2 * time.Second)
				others = append(others, entering(t.Context(), a))
			}
			var err error
			select {
			case err = <-done:
			case <-time.After(time.Minute):
				t.Fatal("Enter has not returned")
			}
			hit = end()
			if err != nil {
				if !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled) {
					t.Error("Enter:", err)
				}
				if _, open := srv.Get("/b/ready"); open && silent {
					// It has opened the barrier and was never told.
					mustEnd(t, "Enter of the other one", others[0], nil)
					mustLeave(t, a)
					wholeRound(t, srv, one, a)
					return
				}
				// Nobody has passed by counting it, and it may come again.
				pending(t, "Enter of the other one", others[0])
				if left, _ := srv.Children("/b"); len(left) != 1 {
					t.Errorf("%v are there, want the other one", left)
				}
				mustEnter(t, one)
			}
			mustEnd(t, "Enter of the other one", others[0], nil)
			out := leaving(t.Context(), one)
			mustLeave(t, a)
			mustEnd(t, "Leave", out, nil)
			wholeRound(t, srv, one, a)
			if n := srv.WatchesOf(live(t, m).ID()); n > 8 {
				t.Errorf("%d watches are left", n)
			}
		})
	})
	return hit
}

// A Leave that is cancelled at any step is completed in the background, and the other participants can leave.
func TestDoubleBarrierLeaveCancelledAtEveryStep(t *testing.T) {
	for _, last := range []bool{false, true} {
		for name, faults := range strikes {
			t.Run(fmt.Sprintf("last=%v/%s", last, name), func(t *testing.T) {
				for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch} {
					if at == zksynctest.OnWatch && name == noAnswer {
						continue
					}
					for step := 1; leaveStruck(t, last, step, at, faults) && !t.Failed(); step++ {
					}
				}
			})
		}
	}
}

func leaveStruck(t *testing.T, last bool, step int, at zksynctest.Moment, faults []zksynctest.Action) (hit bool) {
	t.Run(fmt.Sprintf("step %d %v", step, at), func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			one, a := zksync.NewDoubleBarrier(m, "/b", 2), double(t, srv, 2)
			in := entering(t.Context(), one)
			mustEnter(t, a)
			mustEnd(t, "Enter", in, nil)
			var out <-chan error
			if last {
				out = leaving(t.Context(), a)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			end := cancelAt(srv, live(t, m).ID(), step, at, cancel, faults)
			done := make(chan error, 1)
			go func() { done <- one.Leave(ctx) }()
			synctest.Wait()
			if !last {
				out = leaving(t.Context(), a)
			}
			select {
			case err := <-done:
				if err != nil && (!errors.Is(err, errEnough) || !errors.Is(err, context.Canceled)) {
					t.Error("Leave:", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("Leave has not returned")
			}
			hit = end()
			mustEnd(t, "Leave of the other one", out, nil)
			if err := one.Leave(t.Context()); !errors.Is(err, zksync.ErrNotHeld) {
				t.Errorf("Leave after a cancelled one: %v", err)
			}
			wantEmpty(t, srv)
			wholeRound(t, srv, one, a)
		})
	})
	return hit
}
