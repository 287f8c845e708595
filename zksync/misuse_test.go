package zksync_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// TryLock and TryRLock of a closed Manager fail with ErrClosed, also beside a hold that was lost and not released.
func TestTryAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu, rw := zksync.NewMutex(m, "/mu"), zksync.NewRWMutex(m, "/rw")
		must(t, mu.Lock(t.Context()))
		must(t, rw.RLock(t.Context()))
		must(t, m.Close())
		if ok, err := mu.TryLock(t.Context()); ok || !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
		if ok, err := rw.TryRLock(t.Context()); ok || !errors.Is(err, zksync.ErrClosed) {
			t.Errorf("TryRLock: %v, %v", ok, err)
		}
	})
}

// A nil function is refused before anything is acquired.
func TestNilWork(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw := zksync.NewRWMutex(m, "/rw")
		for name, call := range map[string]func(context.Context) error{
			"Mutex.Do":     func(ctx context.Context) error { return zksync.NewMutex(m, "/mu").Do(ctx, nil) },
			"RWMutex.Do":   func(ctx context.Context) error { return rw.Do(ctx, nil) },
			"RWMutex.RDo":  func(ctx context.Context) error { return rw.RDo(ctx, nil) },
			"Semaphore.Do": func(ctx context.Context) error { return zksync.NewSemaphore(m, "/sem", 1).Do(ctx, 1, nil) },
			"Election.Run": func(ctx context.Context) error { return zksync.NewElection(m, "/e").Run(ctx, nil) },
		} {
			if err := call(t.Context()); !errors.Is(err, zksync.ErrInvalidOption) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if names, _ := srv.Children("/"); len(names) > 1 {
			t.Errorf("there are znodes: %v", names)
		}
	})
}

// Work that goes on although its context has ended is logged until it returns, whether the hold was lost or ctx has ended.
func TestWorkThatDoesNotReturnIsLogged(t *testing.T) {
	for _, ends := range []string{"loss", "ctx"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			core, logs := observer.New(zapcore.WarnLevel)
			m := srv.Connect(t, session.WithLogger(zap.New(core)))
			sem, rw := zksync.NewSemaphore(m, "/sem", 1), zksync.NewRWMutex(m, "/rw")
			for op, do := range map[string]func(context.Context, func(context.Context) error) error{
				"run":     zksync.NewElection(m, "/e").Run,
				"lock":    zksync.NewMutex(m, "/mu").Do,
				"rlock":   rw.RDo,
				"acquire": func(ctx context.Context, fn func(context.Context) error) error { return sem.Do(ctx, 1, fn) },
			} {
				ctx, cancel := context.WithCancel(t.Context())
				logs.TakeAll()
				err := do(ctx, func(held context.Context) error {
					if ends == "loss" {
						srv.ExpireSession(live(t, m).ID())
					} else {
						cancel()
					}
					<-held.Done()
					time.Sleep(10 * time.Second)
					cancel()
					return nil
				})
				about := 0
				for _, line := range logs.TakeAll() {
					if line.Message == "a call waited" && line.ContextMap()["operation"] == op {
						about++
					}
				}
				if about == 0 || about > 3 {
					t.Errorf("%s, %s: %d lines of the log (%v)", op, ends, about, err)
				}
				time.Sleep(time.Minute)
				if n := logs.FilterMessage("a call waited").Len(); n > 0 {
					t.Errorf("%s, %s: %d lines of the log after the return", op, ends, n)
				}
			}
		})
	}
}

// Work that returns soon after the end of its context is no wait.
func TestWorkThatReturnsSoonIsNoWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var waits atomic.Int32
		m := srv.Connect(t, session.WithObserver(session.Observer{WaitEnded: func(session.WaitEnded) { waits.Add(1) }}))
		ctx, cancel := context.WithCancel(t.Context())
		_ = zksync.NewMutex(m, "/mu").Do(ctx, func(context.Context) error {
			cancel()
			time.Sleep(time.Second)
			return nil
		})
		time.Sleep(time.Minute)
		if n := waits.Load(); n > 0 {
			t.Errorf("%d waits were reported", n)
		}
	})
}

// A Lock by a value whose hold was lost and not unlocked says so, and waits for Unlock.
func TestLockAfterALossSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, mu := range []interface {
			LockContext(context.Context) (context.Context, error)
			Lock(context.Context) error
			Unlock() error
		}{zksync.NewMutex(m, "/mu"), zksync.NewRWMutex(m, "/rw")} {
			held, err := mu.LockContext(t.Context())
			must(t, err)
			srv.ExpireSession(live(t, m).ID())
			<-held.Done()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err = mu.Lock(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "for a hold of this value that was lost to be released: session: session lost") {
				t.Errorf("Lock: %v", err)
			}
			if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("Unlock: %v", err)
			}
			must(t, mu.Lock(t.Context()))
			must(t, mu.Unlock())
		}
	})
}

// Acquire and TryAcquire know a size that was raised before the call, although their server lags.
func TestRaisedSizeAtALaggingServer(t *testing.T) {
	for _, patient := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m, operator := srv.Connect(t), srv.Connect(t)
			must(t, srv.Create("/size", []byte("1")))
			sem := zksync.NewSemaphore(m, "/sem", 1, zksync.WithSizeFrom("/size"))
			must(t, sem.Acquire(t.Context(), 1))
			must(t, sem.Release(1))
			srv.Lag(live(t, m).ID())
			_, err := live(t, operator).Set(t.Context(), "/size", []byte("5"), -1)
			must(t, err)
			ok := true
			if patient {
				err = sem.Acquire(t.Context(), 5)
			} else {
				ok, err = sem.TryAcquire(t.Context(), 5)
			}
			if err != nil || !ok {
				t.Errorf("patient %v: %v, %v", patient, ok, err)
			}
		})
	}
}

// A message tells the loss of its session.
func TestMessageLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		msg := <-q.Messages()
		time.Sleep(time.Hour)
		select {
		case <-msg.Lost():
			t.Error("the message is lost in a session that lives")
		default:
		}
		srv.ExpireSession(live(t, m).ID())
		select {
		case <-msg.Lost():
		case <-time.After(time.Minute):
			t.Error("the loss is not known in a minute")
		}
		if err := msg.Ack(t.Context()); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Ack: %v", err)
		}
	})
	if zksync.NewMessage("/q/1", nil, nil).Lost() != nil {
		t.Error("a message of NewMessage can be lost")
	}
}
