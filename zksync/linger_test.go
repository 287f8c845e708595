package zksync_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// lingering runs test with a Mutex that has come to rest.
func lingering(t *testing.T, test func(t *testing.T, srv *zksynctest.Server, m *session.Manager, mu *zksync.Mutex)) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu := zksync.NewMutex(m, path, zksync.WithLinger(time.Minute))
		warm(t, mu)
		synctest.Wait()
		wantInLine(t, srv, 1)
		srv.ResetOps()
		test(t, srv, m, mu)
	})
}

// With WithLinger, locking again costs no request.
func TestLingerLocksAgainWithoutARequest(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, mu *zksync.Mutex) {
		for range 100 {
			warm(t, mu)
			time.Sleep(time.Second)
			if ok, err := mu.TryLock(t.Context()); !ok || err != nil {
				t.Fatal("TryLock:", ok, err)
			}
			unlock(t, mu)
		}
		if got := names(requests(srv)); got != "" {
			t.Errorf("locking again took %s", got)
		}
		time.Sleep(time.Minute + time.Second)
		wantInLine(t, srv, 0)
		if got := names(requests(srv)); got != "delete" {
			t.Errorf("the end of lingering took %s", got)
		}
	})
}

// Locking again right after the first Unlock of a lingering lock takes at most the first read of the directory.
func TestLingerAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path, zksync.WithLinger(time.Minute))
		warm(t, mu)
		srv.ResetOps()
		for range 100 { // the first look at the directory may be under way
			warm(t, mu)
		}
		for _, op := range requests(srv) {
			if op.Code != zkserver.OpGetChildren2 {
				t.Errorf("locking again took %v", op.Code)
			}
		}
	})
}

// The first contender ends the linger of a lock at once.
func TestLingerEndsForAContender(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, mu *zksync.Mutex) {
		other := zksync.NewMutex(srv.Connect(t), path)
		start := time.Now()
		_, token := hold(t, other)
		if took := time.Since(start); took > 0 {
			t.Errorf("the contender waited %v", took)
		}
		waiting := locking(t.Context(), mu)
		pending(t, "Lock behind the contender", waiting)
		unlock(t, other)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		// A contender that comes while the lock is held keeps the lock from
		// lingering.
		late := locking(t.Context(), other)
		unlock(t, mu)
		if err := <-late; err != nil {
			t.Fatal(err)
		}
		unlock(t, other)
		if _, again := hold(t, mu); again <= token {
			t.Errorf("token %d after %d", again, token)
		}
		unlock(t, mu)
	})
}

// A TryLock of another process ends the linger of a lock, and holds the lock or returns false.
func TestLingerAndTryLockElsewhere(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, mu *zksync.Mutex) {
		other := zksync.NewMutex(srv.Connect(t), path)
		if ok, err := other.TryLock(t.Context()); err != nil {
			t.Error(err)
		} else if ok { // the contender had gone when TryLock listed the line
			unlock(t, other)
		}
		synctest.Wait()
		if ok, err := other.TryLock(t.Context()); !ok || err != nil {
			t.Errorf("the second TryLock: %v, %v", ok, err)
		}
		unlock(t, other)
		wantInLine(t, srv, 0)
	})
}

// A lingering lock is not taken up again after a disconnect before the server has shown that its znode still exists.
func TestLingerAfterADisconnect(t *testing.T) {
	for _, removed := range []bool{false, true} {
		for _, try := range []bool{false, true} {
			lingering(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, mu *zksync.Mutex) {
				other := zksync.NewMutex(srv.Connect(t), path)
				srv.HangHandshake(true)
				srv.Disconnect(live(t, m).ID())
				synctest.Wait()
				var ctx context.Context
				if removed {
					srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
					ctx, _ = hold(t, other)
				}
				got := make(chan error, 1)
				go func() {
					if try {
						got <- tryLock(t.Context(), mu)
					} else {
						got <- mu.Lock(t.Context())
					}
				}()
				pending(t, "Lock without a connection", got)
				srv.HangHandshake(false)
				time.Sleep(5 * time.Second)
				switch {
				case removed && try:
					if err := <-got; !errors.Is(err, errOccupied) {
						t.Error("TryLock:", err)
					}
				case removed:
					pending(t, "Lock beside another holder", got)
				default:
					if err := <-got; err != nil {
						t.Error(err)
					}
					unlock(t, mu)
				}
				if removed {
					if ctx.Err() != nil {
						t.Error(context.Cause(ctx))
					}
					unlock(t, other)
					if !try {
						if err := <-got; err != nil {
							t.Error(err)
						}
						unlock(t, mu)
					}
				}
				time.Sleep(2 * time.Minute)
				wantInLine(t, srv, 0)
			})
		}
	}
}

// A lingering lock whose znode was deleted is not taken up again.
func TestLingerIsNotTakenUpWhenRemoved(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, mu *zksync.Mutex) {
		// The look that follows on the removal is slow.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetChildren2, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(time.Second)})
		srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
		other := zksync.NewMutex(srv.Connect(t), path)
		ctx, _ := hold(t, other)
		synctest.Wait()
		waiting := locking(t.Context(), mu)
		time.Sleep(time.Minute)
		pending(t, "Lock beside another holder", waiting)
		if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
		unlock(t, other)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		unlock(t, mu)
	})
}

// A lingering lock is not taken up again before the directory was read once.
func TestLingerBeforeTheFirstLook(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu, other := zksync.NewMutex(srv.Connect(t), path, zksync.WithLinger(time.Minute)), zksync.NewMutex(srv.Connect(t), path)
		warm(t, other)
		lock(t, mu)
		srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
		lock(t, other)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(time.Second)})
		mu.Unlock() // keeps its contender, which was deleted
		waiting := locking(t.Context(), mu)
		time.Sleep(time.Minute)
		pending(t, "Lock beside another holder", waiting)
		unlock(t, other)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		unlock(t, mu)
	})
}

// A lingering lock ends with its session and with its Manager.
func TestLingerAndTheEndOfTheSession(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, mu *zksync.Mutex) {
		srv.ExpireSession(live(t, m).ID())
		time.Sleep(time.Second)
		warm(t, mu)
		synctest.Wait()
		m.Close()
		wantInLine(t, srv, 0)
		if err := mu.Lock(t.Context()); !errors.Is(err, zksync.ErrClosed) {
			t.Error("Lock:", err)
		}
		if _, err := mu.TryLock(t.Context()); !errors.Is(err, zksync.ErrClosed) {
			t.Error("TryLock:", err)
		}
	})
}

// Goroutines that share a lingering lock ask nothing while their process is alone, and give another process its turn.
func TestLingerAndManyGoroutines(t *testing.T) {
	lingering(t, func(t *testing.T, srv *zksynctest.Server, _ *session.Manager, mu *zksync.Mutex) {
		w := &witness{t: t, shared: true}
		stop := hog(t, mu, 64, w)
		time.Sleep(10 * time.Second)
		if got := names(requests(srv)); got != "getData" { // the watch on a znode that is held for long
			t.Errorf("a process that is alone asked %s", got)
		}
		other := zksync.NewMutex(srv.Connect(t), path, zksync.WithLinger(time.Minute))
		var wg sync.WaitGroup
		for range 20 {
			start := time.Now()
			ctx, _ := hold(t, other)
			if waited := time.Since(start); waited > 100*time.Millisecond {
				t.Errorf("another process waited %v for its turn", waited)
			}
			w.hold("the other process", ctx, time.Millisecond)
			unlock(t, other)
		}
		wg.Wait()
		stop()
		time.Sleep(3 * time.Minute)
		wantInLine(t, srv, 0)
	})
}
