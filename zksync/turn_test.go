package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// hog keeps n goroutines locking and unlocking mu, each for a moment, until
// stop is called.
func hog(t *testing.T, mu *zksync.Mutex, n int, w *witness) (stop func()) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				held, err := mu.LockContext(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				w.hold(worker(i), held, time.Millisecond)
				unlock(t, mu)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// The goroutines of one value take turns for a bounded time, then another process has its turn.
func TestTurnsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu, other := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(srv.Connect(t), path)
		w := &witness{t: t, shared: true}
		stop := hog(t, mu, 64, w)
		time.Sleep(time.Second)
		for range 20 {
			start := time.Now()
			ctx, _ := hold(t, other)
			if waited := time.Since(start); waited > 100*time.Millisecond {
				t.Errorf("another process waited %v for its turn", waited)
			}
			w.hold("the other process", ctx, time.Millisecond)
			unlock(t, other)
			time.Sleep(7 * time.Millisecond)
		}
		stop()
		wantInLine(t, srv, 0)
		if w.passed < 500 {
			t.Errorf("%d holds", w.passed)
		}
	})
}

// A lost answer to the multi by which a process goes to the back of the line costs no waiter its turn.
func TestTurnOverWithALostAnswer(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for lookups := range 2 {
			for _, cancelled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, %d look-ups, cancelled %v", at, lookups, cancelled), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) { turnOver(t, srv, at, lookups, cancelled) })
				})
			}
		}
	}
}

func turnOver(t *testing.T, srv *zksynctest.Server, at zksynctest.Moment, lookups int, cancelled bool) {
	m := srv.Connect(t)
	mu := zksync.NewMutex(m, path)
	_, token := hold(t, mu)
	time.Sleep(time.Second) // the turn is over
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	next := locking(ctx, mu)
	if cancelled {
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Call(func() { cancel(errEnough) })})
	}
	hit := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect})
	srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Times: lookups, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
	if lookups == 0 {
		// Times 0 is once.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() {})})
	}
	unlock(t, mu)
	err := <-next
	synctest.Wait() // the fault that cancels the Lock comes before the fault that is counted
	if hit.Count() != 1 {
		t.Fatal("there was no turn-over")
	}
	if err != nil {
		if !cancelled || !errors.Is(err, errEnough) {
			t.Fatal("Lock:", err)
		}
	} else {
		if n := len(inLine(srv, path)); n != 1 {
			t.Errorf("%d znodes of one process: %v", n, inLine(srv, path))
		}
		if err := mu.Unlock(); err != nil {
			t.Error("Unlock:", err)
		}
	}
	time.Sleep(5 * time.Second)
	wantInLine(t, srv, 0)
	if _, again := hold(t, mu); again <= token {
		t.Errorf("token %d after %d", again, token)
	}
	unlock(t, mu)
}

// When a process goes to the back of the line its next hold has a new token.
func TestTurnOverGivesAFreshToken(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		var tokens []int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, token := hold(t, mu)
				tokens = append(tokens, token)
				time.Sleep(20 * time.Millisecond)
				unlock(t, mu)
			})
			synctest.Wait()
		}
		srv.ResetOps()
		wg.Wait()
		if tokens[0] != tokens[1] || tokens[1] != tokens[2] || tokens[3] <= tokens[2] || tokens[4] != tokens[3] {
			t.Errorf("tokens %v, want a fresh one after 50 ms", tokens)
		}
		if got := names(requests(srv)); got != "multi delete" {
			t.Errorf("a process that is alone goes on by %s", got)
		}
	})
}

// A waiting goroutine that is cancelled hands its znode on to the next goroutine of its value.
func TestCancelledHeadHandsItsWaitOn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder, mu := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(srv.Connect(t), path)
		behind := zksync.NewMutex(srv.Connect(t), path)
		lock(t, holder)
		ctx, cancel := context.WithCancel(t.Context())
		head := locking(ctx, mu)
		second := locking(t.Context(), mu)
		last := locking(t.Context(), behind)
		line := wantInLine(t, srv, 3)
		srv.ResetOps()
		cancel()
		if err := <-head; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if got := requests(srv); len(got) > 0 {
			t.Errorf("handing on took %s", names(got))
		}
		if now := wantInLine(t, srv, 3); now[1] != line[1] {
			t.Error("the position in line was given up")
		}
		unlock(t, holder)
		if err := <-second; err != nil {
			t.Error(err)
		}
		pending(t, "Lock of the one behind", last)
		unlock(t, mu)
		if err := <-last; err != nil {
			t.Error(err)
		}
		unlock(t, behind)
		wantInLine(t, srv, 0)
	})
}

// The goroutines of one value get the lock in the order of their arrival.
func TestGoroutinesAreServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		lock(t, mu)
		var order []int
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				lock(t, mu)
				order = append(order, i)
				unlock(t, mu)
			})
			synctest.Wait()
		}
		unlock(t, mu)
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}
