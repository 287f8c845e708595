package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// After a lost answer a waiter neither waits behind its own znode nor leaves one behind.
func TestLostAnswers(t *testing.T) {
	for _, lost := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for lookups := range 3 {
			for _, lag := range []bool{false, true} {
				t.Run(fmt.Sprintf("create %v, %d look-ups, lag %v", lost, lookups, lag), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						mu := zksync.NewMutex(m, path)
						warm(t, mu)
						id := live(t, m).ID()
						if lag {
							// The server we come back to has not heard of the create.
							srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() { srv.Lag(id) })})
							srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpConnect, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() { srv.Lag(id) })})
						}
						srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, At: lost, Do: zksynctest.Disconnect})
						srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpGetChildren2, Times: lookups, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
						if lookups == 0 {
							srv.ResetOps()
						}
						start := time.Now()
						lock(t, mu)
						wantInLine(t, srv, 1)
						// Only the pauses between attempts to connect go by.
						if took := time.Since(start); took > 5*time.Second {
							t.Errorf("Lock took %v", took)
						}
						unlock(t, mu)
						wantInLine(t, srv, 0)
						start = time.Now()
						warm(t, mu)
						if took := time.Since(start); took > 0 {
							t.Errorf("the next Lock and Unlock took %v", took)
						}
					})
				})
			}
		}
	}
}

// A waiter whose session expires joins again, at the end of the line, and its call goes on.
func TestWaiterWhoseSessionExpiresJoinsAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		holder, mu := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(m, path)
		behind := zksync.NewMutex(srv.Connect(t), path)
		lock(t, holder)
		waiting := locking(t.Context(), mu)
		last := locking(t.Context(), behind)
		id := live(t, m).ID()
		srv.ExpireSession(id)
		time.Sleep(time.Second)
		pending(t, "Lock", waiting)
		if live(t, m).ID() == id {
			t.Fatal("the session lives")
		}
		wantInLine(t, srv, 3)
		unlock(t, holder)
		if err := <-last; err != nil { // the position in line is lost, not the call
			t.Fatal(err)
		}
		pending(t, "Lock", waiting)
		unlock(t, behind)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		unlock(t, mu)
		wantInLine(t, srv, 0)
	})
}

// A grant is proven against the lease before the caller gets it.
func TestStaleGrantIsProvenFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		holder, mu := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(m, path)
		lock(t, holder)
		waiting := locking(t.Context(), mu)
		s := live(t, m)
		// The leader hears nothing of the waiter any more, while events go on
		// coming to it: its session will be expired though it seems first.
		srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpSync, Times: -1, At: zksynctest.BeforeCommit, Do: zksynctest.Drop})
		srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Times: -1, At: zksynctest.BeforeCommit, Do: zksynctest.Drop})
		srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpConnect, Times: -1, At: zksynctest.BeforeCommit, Do: zksynctest.Drop})
		time.Sleep(time.Until(s.Deadline()))
		unlock(t, holder)
		time.Sleep(s.Timeout() / 10)
		pending(t, "Lock over a lease that has run out", waiting)
	})
}

// In a partition the context of a hold ends before the servers give the lock to another client. The server swallows
// everything that the holder sends, at many moments of its heartbeat.
func TestPartitionedHolderLetsGoInTime(t *testing.T) {
	const timeout = 10 * time.Second
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t, session.WithTimeout(timeout))
				holder, next := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
				ctx, _ := hold(t, holder)
				waiting := locking(t.Context(), next)
				time.Sleep(time.Minute + time.Duration(i)*timeout/100)
				id := live(t, m).ID()
				srv.Partition(id)
				cut := time.Now()
				cause := ended(t, ctx, timeout)
				told := time.Now()
				if !errors.Is(cause, zksync.ErrLost) {
					t.Error(cause)
				}
				pending(t, "the next one's Lock", waiting)
				if err := <-waiting; err != nil {
					t.Fatal(err)
				}
				t.Logf("told %v after the cut, %v before the next grant", told.Sub(cut), time.Since(told))
				if !time.Now().After(told) {
					t.Error("the next one held before the holder was told")
				}
				if err := holder.Unlock(); !errors.Is(err, zksync.ErrLost) {
					t.Error("Unlock:", err)
				}
				unlock(t, next)
				srv.Heal(id)
			})
		})
	}
}

// On a follower that is cut off from its leader the context of a hold ends before the servers give the lock to another
// client.
func TestHolderBehindACutFollowerLetsGoInTime(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second, 40 * time.Second} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t, session.WithTimeout(timeout))
			holder, next := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
			ctx, _ := hold(t, holder)
			waiting := locking(t.Context(), next)
			time.Sleep(time.Minute + timeout/7)
			// The follower goes on answering pings, and no server answers a
			// ConnectRequest of the session.
			id := live(t, m).ID()
			srv.CutFromLeader(id, true)
			srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpConnect, Times: -1, At: zksynctest.BeforeCommit, Do: zksynctest.Drop})
			ended(t, ctx, timeout)
			pending(t, "the next one's Lock", waiting)
			if err := <-waiting; err != nil {
				t.Error(err)
			}
			unlock(t, next)
			if err := holder.Unlock(); !errors.Is(err, zksync.ErrLost) {
				t.Error("Unlock:", err)
			}
		})
	}
}

// A restart of the server within the lease costs a holder nothing and keeps the order of the waiters.
func TestRestartWithinTheLeaseCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		holder, next := zksync.NewMutex(m, path), zksync.NewMutex(srv.Connect(t), path)
		ctx, token := hold(t, holder)
		waiting := locking(t.Context(), next)
		for down := time.Duration(0); down <= 3*time.Second; down += time.Second {
			srv.Stop()
			time.Sleep(down)
			if err := srv.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if ctx.Err() != nil {
				t.Fatalf("lost by a restart of %v: %v", down, context.Cause(ctx))
			}
			pending(t, "the next one's Lock", waiting)
		}
		unlock(t, holder)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		unlock(t, next)
		if _, again := hold(t, next); again <= token {
			t.Errorf("token %d after %d", again, token)
		}
	})
}

// A waiter whose connection breaks when the contender before it leaves is granted the lock after the reconnect.
func TestGrantAfterAReconnectIsLookedUp(t *testing.T) {
	for _, removed := range []bool{false, true} {
		t.Run(fmt.Sprintf("own znode removed %v", removed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				holder, mu := zksync.NewMutex(srv.Connect(t), path), zksync.NewMutex(m, path)
				behind := zksync.NewMutex(srv.Connect(t), path)
				lock(t, holder)
				waiting := locking(t.Context(), mu)
				last := locking(t.Context(), behind)
				line := wantInLine(t, srv, 3)
				srv.HangHandshake(true)
				srv.Disconnect(live(t, m).ID())
				synctest.Wait()
				if removed {
					srv.Delete(path + "/" + line[1])
				}
				unlock(t, holder)
				srv.HangHandshake(false)
				if removed {
					if err := <-waiting; !errors.Is(err, zksync.ErrLost) {
						t.Error("Lock:", err)
					}
					if err := mu.Unlock(); !errors.Is(err, zksync.ErrNotHeld) {
						t.Error("Unlock:", err)
					}
				} else {
					if err := <-waiting; err != nil {
						t.Error("Lock:", err)
					}
					pending(t, "the last one's Lock", last)
					unlock(t, mu)
				}
				if err := <-last; err != nil {
					t.Error(err)
				}
				unlock(t, behind)
				wantInLine(t, srv, 0)
			})
		})
	}
}

// A waiter fails with ErrClosed when its Manager is closed.
func TestCloseWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		holder := zksync.NewMutex(srv.Connect(t), path)
		lock(t, holder)
		mu, inside := zksync.NewMutex(m, path), zksync.NewMutex(m, "/locks/other")
		waiting, local := locking(t.Context(), mu), locking(t.Context(), mu)
		release := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- inside.Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				<-release
				return nil
			})
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- m.Close() }()
		pending(t, "Close, which waits for the function,", closed)
		if err := <-waiting; !errors.Is(err, zksync.ErrClosed) {
			t.Error("Lock:", err)
		}
		close(release)
		if err := <-done; !errors.Is(err, zksync.ErrClosed) || !errors.Is(err, zksync.ErrLost) {
			t.Error("Do:", err)
		}
		<-closed
		if err := <-local; !errors.Is(err, zksync.ErrClosed) {
			t.Error("Lock behind a local one:", err)
		}
		if err := mu.Lock(t.Context()); !errors.Is(err, zksync.ErrClosed) {
			t.Error("Lock afterwards:", err)
		}
		wantInLine(t, srv, 1)
	})
}
