package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A hold that was acquired while the release of a lost hold of the same value was under way stays: the release that
// fails with ErrLost cannot mean the newer hold.
func TestReleaseOfALostHoldEndsNoNewerHold(t *testing.T) {
	for name, play := range map[string]func(m *session.Manager) (acquire func(context.Context) (context.Context, error), release func() error, dir string){
		"RWMutex": func(m *session.Manager) (func(context.Context) (context.Context, error), func() error, string) {
			rw := zksync.NewRWMutex(m, path)
			return rw.RLockContext, rw.RUnlock, path
		},
		"Semaphore": func(m *session.Manager) (func(context.Context) (context.Context, error), func() error, string) {
			sem := zksync.NewSemaphore(m, path, 3)
			return func(ctx context.Context) (context.Context, error) { return sem.AcquireContext(ctx, 1) },
				func() error { return sem.Release(1) }, path + "/leases"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				acquire, release, dir := play(srv.Connect(t))
				_, err := acquire(t.Context())
				must(t, err)
				must(t, srv.Delete(dir+"/"+inLine(srv, dir)[0]))
				srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, At: zkserver.BeforeReply, Do: zksynctest.Delay(time.Second)})
				done := make(chan error, 1)
				go func() { done <- release() }()
				synctest.Wait()
				held, err := acquire(t.Context())
				must(t, err)
				if err := <-done; !errors.Is(err, zksync.ErrLost) {
					t.Errorf("the release of the lost hold: %v, want ErrLost", err)
				}
				synctest.Wait()
				if held.Err() != nil {
					t.Errorf("the newer hold ended: %v", context.Cause(held))
				}
				if err := release(); err != nil {
					t.Errorf("the release of the newer hold: %v", err)
				}
			})
		})
	}
}

// An RDo whose read lock was acquired while the release of a lost read lock of the same value was under way works to
// its end.
func TestReleaseOfALostHoldEndsNoNewerRDo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw := zksync.NewRWMutex(srv.Connect(t), path)
		must(t, rw.RLock(t.Context()))
		must(t, srv.Delete(path+"/"+wantInLine(t, srv, 1)[0]))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, At: zkserver.BeforeReply, Do: zksynctest.Delay(time.Second)})
		done := make(chan error, 1)
		go func() { done <- rw.RUnlock() }()
		synctest.Wait()
		err := rw.RDo(t.Context(), func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return context.Cause(ctx)
		})
		if err != nil {
			t.Errorf("RDo: %v", err)
		}
		if err := <-done; !errors.Is(err, zksync.ErrLost) {
			t.Errorf("RUnlock of the lost read lock: %v, want ErrLost", err)
		}
	})
}

// When the release of a hold is the first to find a loss, the holds that were held through the same value at that time
// are lost too: the lost hold may be any of them.
func TestReleaseOfALostHoldEndsTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		sem := zksync.NewSemaphore(srv.Connect(t), path, 3)
		must(t, sem.Acquire(t.Context(), 1))
		must(t, srv.Delete(path+"/leases/"+inLine(srv, path+"/leases")[0]))
		held, err := sem.AcquireContext(t.Context(), 1)
		must(t, err)
		for range 2 {
			if err := sem.Release(1); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("Release: %v, want ErrLost", err)
			}
		}
		if cause := context.Cause(held); !errors.Is(cause, zksync.ErrLost) {
			t.Errorf("the context of the other hold ended with %v, want ErrLost", cause)
		}
	})
}
