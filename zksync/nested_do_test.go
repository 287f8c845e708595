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

// A Lock within the function of Do returns when Do has lost its lock: at once, with the loss as the cause, without
// further requests, and without a contender that stays. To see this test fail, let ClassOf look for the sentinels
// before it looks for the end of a ctx, let Manager.Session return a session although ctx has ended, and let Retry make no
// pauses: each of these alone is enough to end Lock.
func TestLockWithinADoThatHasLostItsLock(t *testing.T) {
	for _, waits := range []bool{false, true} { // b.Lock waits for another holder when a is lost
		t.Run(fmt.Sprintf("waits %v", waits), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				a, b := zksync.NewMutex(m, "/locks/a"), zksync.NewMutex(m, path)
				lock(t, zksync.NewMutex(srv.Connect(t), path)) // b's other holder
				lose := func() { must(t, srv.ExpireSession(live(t, m).ID())) }
				locked := make(chan error, 1)
				done := start(func() error {
					return a.Do(t.Context(), func(ctx context.Context) error {
						if !waits {
							lose()
							<-ctx.Done()
						}
						err := b.Lock(ctx)
						locked <- err
						return err
					})
				})
				if waits {
					pending(t, "Lock", locked)
					lose()
				}
				lost := time.Now()
				err := <-locked
				if !errors.Is(err, context.Canceled) || !errors.Is(err, zksync.ErrLost) {
					t.Errorf("Lock: %v, want %v because of %v", err, context.Canceled, zksync.ErrLost)
				}
				mustEnd(t, "Do", done, zksync.ErrLost)
				if took := time.Since(lost); took > time.Second {
					t.Errorf("Lock and Do took %v after the loss", took)
				}
				time.Sleep(time.Second)
				srv.ResetOps()
				time.Sleep(time.Hour)
				if ops := requests(srv); len(ops) > 0 {
					t.Errorf("%d requests in the hour after the loss: %s", len(ops), names(ops))
				}
				wantInLine(t, srv, 1)
				m.Close()
			})
		})
	}
}

// Manager.Close ends a Lock that waits, and a Lock that repeats its requests or asks for a session, also within the
// function of Do. To see this test fail, let Manager.Session not look at the Manager's ctx.
func TestCloseEndsALockThatRetries(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, srv *zksynctest.Server, s *session.Session){
		"behind another holder": func(t *testing.T, srv *zksynctest.Server, _ *session.Session) {
			lock(t, zksync.NewMutex(srv.Connect(t), path))
		},
		"throttled": func(_ *testing.T, srv *zksynctest.Server, s *session.Session) {
			srv.Inject(zksynctest.Fault{
				Session: s.ID(), Times: -1, Do: zksynctest.Error(throttled), Path: path + "*",
				Match: func(op zkserver.Op) bool { return !heartbeat(op) },
			})
		},
		"disconnected by each request": func(_ *testing.T, srv *zksynctest.Server, s *session.Session) {
			srv.Inject(zksynctest.Fault{
				Session: s.ID(), Times: -1, Do: zksynctest.Disconnect, Path: path + "*",
				Match: func(op zkserver.Op) bool { return !heartbeat(op) },
			})
		},
		"without a session": func(_ *testing.T, srv *zksynctest.Server, s *session.Session) {
			srv.Inject(zksynctest.Fault{Op: zkserver.OpConnect, Times: -1, Do: zksynctest.Disconnect})
			srv.Disconnect(s.ID())
			<-s.Done()
		},
	} {
		for _, within := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s within Do %v", name, within), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					mu := zksync.NewMutex(m, path)
					locked := make(chan error, 1)
					try := func(ctx context.Context) error {
						trouble(t, srv, live(t, m))
						// The end of the hold of Do does not end this Lock: only Close does.
						err := mu.Lock(context.WithoutCancel(ctx))
						locked <- err
						return err
					}
					var tried <-chan error
					if within {
						outer := zksync.NewMutex(m, "/locks/outer")
						tried = start(func() error { return outer.Do(t.Context(), try) })
					} else {
						tried = start(func() error { return try(t.Context()) })
					}
					time.Sleep(time.Minute)
					pending(t, "Lock", locked)
					began := time.Now()
					closed := start(m.Close)
					mustEnd(t, "Lock", locked, zksync.ErrClosed)
					mustEnd(t, "the caller of Lock", tried, zksync.ErrClosed)
					mustEnd(t, "Close", closed, nil)
					if took := time.Since(began); took > 10*time.Second {
						t.Errorf("the end took %v, want at most the session timeout", took)
					}
					synctest.Wait()
					srv.RemoveFaults()
				})
			})
		}
	}
}
