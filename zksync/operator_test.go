package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A waiter whose znode another client deleted fails with ErrLost, at every step of its way to the lock and while it
// reconnects.
func TestRemovedWaiterIsTold(t *testing.T) {
	for _, reconnect := range []bool{false, true} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch} {
			for step := 1; step <= 8; step++ {
				t.Run(fmt.Sprintf("reconnect %v, step %d %v", reconnect, step, at), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) { removeWaiter(t, srv, reconnect, at, step) })
				})
			}
		}
	}
}

func removeWaiter(t *testing.T, srv *zksynctest.Server, reconnect bool, at zksynctest.Moment, step int) {
	m := srv.Connect(t)
	mu, behind := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
	w := &witness{t: t}
	release := queue(t, srv, 2)
	removed, id := false, live(t, m).ID()
	srv.Inject(zksynctest.Fault{Session: id, Nth: step, At: at, Do: zksynctest.Call(func() {
		for _, info := range srv.Sessions() {
			if info.ID == id && len(info.Ephemerals) > 0 {
				removed = srv.Delete(info.Ephemerals[0]) == nil
			}
		}
		if reconnect {
			srv.Disconnect(id)
		}
	})})
	type result struct {
		ctx context.Context
		err error
	}
	got := make(chan result, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		held, err := mu.LockContext(ctx)
		got <- result{held, err}
	}()
	time.Sleep(5 * time.Second) // it may have to reconnect
	last := locking(t.Context(), behind)
	release()
	switch r := <-got; {
	case r.err == nil && removed && len(inLine(srv, path)) == 1:
		// It was removed at the very moment of the grant: then it is the
		// holder that is told.
		if cause := ended(t, r.ctx, time.Minute); !errors.Is(cause, zksync.ErrLost) {
			t.Error(cause)
		}
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Error("Unlock:", err)
		}
	case r.err == nil:
		w.enter("the waiter", r.ctx)
		pending(t, "Lock behind", last)
		w.leave("the waiter")
		unlock(t, mu)
	case !removed || !errors.Is(r.err, zksync.ErrLost):
		t.Errorf("Lock: %v, though removed is %v", r.err, removed)
	}
	if err := <-last; err != nil {
		t.Error(err)
	}
	unlock(t, behind)
	time.Sleep(5 * time.Second)
	wantInLine(t, srv, 0)
}

// A holder whose znode another client deleted learns of it by its context and by Unlock, whenever that was.
func TestRemovedHolderIsTold(t *testing.T) {
	for _, reconnecting := range []bool{false, true} {
		for _, after := range []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute} {
			for _, contended := range []bool{false, true} {
				t.Run(fmt.Sprintf("reconnecting %v, after %v, contended %v", reconnecting, after, contended), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						mu := zksync.NewMutex(m, path)
						if contended {
							release := queue(t, srv, 1)
							next := locking(t.Context(), mu)
							release()
							if err := <-next; err != nil {
								t.Fatal(err)
							}
							unlock(t, mu)
						}
						ctx, _ := hold(t, mu)
						time.Sleep(after)
						if reconnecting {
							srv.HangHandshake(true)
							srv.Disconnect(live(t, m).ID())
							synctest.Wait()
						}
						srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
						srv.HangHandshake(false)
						if cause := ended(t, ctx, 5*time.Second); !errors.Is(cause, zksync.ErrLost) {
							t.Error(cause)
						}
						if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
							t.Error("Unlock:", err)
						}
						warm(t, mu)
						wantInLine(t, srv, 0)
					})
				})
			}
		}
	}
}

// When a shared znode was deleted by another client only its holder gets ErrLost, and the next waiter of the value
// joins again.
func TestRemovedContenderThatIsHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		lock(t, mu)
		time.Sleep(time.Second)
		next := locking(t.Context(), mu)
		srv.Delete(path + "/" + wantInLine(t, srv, 1)[0])
		synctest.Wait()
		if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Error("Unlock:", err)
		}
		if err := <-next; err != nil { // for nobody but the holder to answer for
			t.Fatal(err)
		}
		wantInLine(t, srv, 1)
		unlock(t, mu)
	})
}

// A directory that vanishes is created again, and its holder and its waiters are told.
func TestDirectoryRemovedUnderTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder, mu := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(srv.Connect(t), path)
		ctx, _ := hold(t, holder)
		time.Sleep(time.Second)
		waiting := locking(t.Context(), mu)
		// From the end: otherwise the waiting contender would rightly get the lock in
		// between.
		for _, name := range slices.Backward(wantInLine(t, srv, 2)) {
			srv.Delete(path + "/" + name)
		}
		if err := srv.Delete(path); err != nil {
			t.Fatal(err)
		}
		if cause := ended(t, ctx, time.Second); !errors.Is(cause, zksync.ErrLost) {
			t.Error(cause)
		}
		if err := <-waiting; !errors.Is(err, zksync.ErrLost) {
			t.Error("Lock:", err)
		}
		if err := holder.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Error("Unlock:", err)
		}
		synctest.Wait()
		srv.ResetOps()
		warm(t, mu)
		if got := names(requests(srv)); got != "multi createContainer multi delete" {
			t.Errorf("afterwards: %s", got)
		}
	})
}
