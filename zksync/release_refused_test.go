package zksync_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// withoutDelete creates directories whose children may not be deleted.
func withoutDelete(t *testing.T, srv *zksynctest.Server, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		_, err := live(t, srv.Connect(t)).Create(t.Context(), dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermDelete)...)
		must(t, err)
	}
}

// wantRefused checks that a call has returned the refusal of the server.
func wantRefused(t *testing.T, call string, err error) {
	t.Helper()
	if !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("%s: %v, want the refusal", call, err)
	}
}

// A release and a Run report that the server has refused to delete their znodes, also if the first request has lost its
// connection or met an internal error.
func TestReleaseReportsARefusalAfterAnotherFailure(t *testing.T) {
	t.Run("units", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			withoutDelete(t, srv, sem, semLeases)
			s := zksync.NewSemaphore(srv.Connect(t), sem, 2)
			must(t, s.Acquire(t.Context(), 2))
			srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", Do: zksynctest.Disconnect})
			wantRefused(t, "Release", s.Release(2))
		})
	})
	t.Run("mutex", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			must(t, srv.Create("/locks", nil))
			withoutDelete(t, srv, path)
			mu := zksync.NewMutex(srv.Connect(t), path)
			lock(t, mu)
			srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: path + "/*", Do: zksynctest.Error(-1)})
			wantRefused(t, "Unlock", mu.Unlock())
		})
	})
	for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutEphemeral} {
		t.Run("election "+layout.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				withoutDelete(t, srv, "/dir", "/dir/leader")
				at := "/dir/leader"
				if layout == zksync.LayoutEphemeral {
					at = "/dir/alone"
				}
				e := zksync.NewElection(srv.Connect(t), at, zksync.WithLayout(layout))
				wantRefused(t, "Run", e.Run(t.Context(), func(context.Context) error {
					srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: at + "/*", Do: zksynctest.Error(-1)})
					srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: at, Do: zksynctest.Disconnect})
					return nil
				}))
			})
		})
	}
}

// TryLock and TryAcquire report that the server has refused to delete the znode of an attempt that has failed: the znode
// stays until the session ends, and other clients wait behind it.
func TestTryReportsARefusedRemoval(t *testing.T) {
	t.Run("mutex", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			must(t, srv.Create("/locks", nil))
			withoutDelete(t, srv, path)
			lock(t, zksync.NewMutex(srv.Connect(t), path))
			ok, err := zksync.NewMutex(srv.Connect(t), path).TryLock(t.Context())
			wantRefused(t, "TryLock", err)
			wantInLine(t, srv, 2)
			if ok {
				t.Error("TryLock has acquired the lock of another client")
			}
		})
	})
	t.Run("semaphore", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := zksync.NewSemaphore(srv.Connect(t), sem, 1)
			must(t, s.Acquire(t.Context(), 1))
			srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: semLocks + "/*", Times: -1, Do: zksynctest.Error(zkserver.ErrNoAuth)})
			_, err := zksync.NewSemaphore(srv.Connect(t), sem, 1).TryAcquire(t.Context(), 1)
			wantRefused(t, "TryAcquire", err)
		})
	})
	t.Run("semaphore beside a late lease", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := zksync.NewSemaphore(srv.Connect(t), sem, 1)
			must(t, s.Acquire(t.Context(), 1))
			must(t, s.Release(1))
			srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
				must(t, srv.Create(lateLease, nil))
			})})
			srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: semLeases + "/*", Do: zksynctest.Error(zkserver.ErrNoAuth)})
			_, err := s.TryAcquire(t.Context(), 1)
			wantRefused(t, "TryAcquire", err)
		})
	})
}

// TryRLock and TryAcquire that return false leave no znode, also if another client removes a hold of the same value
// meanwhile.
func TestTryBesideALossLeavesNoZnode(t *testing.T) {
	// lose removes the znode of a hold while a contender joins the line, and makes the next removal slow.
	lose := func(t *testing.T, srv *zksynctest.Server, line, dir string) {
		held := inLine(srv, dir)[0]
		srv.Inject(zksynctest.Fault{Op: multi, Path: line + "/*", Do: zksynctest.Delay(time.Second)})
		time.AfterFunc(time.Second/2, func() { must(t, srv.Delete(dir+"/"+held)) })
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: dir + "/*", Do: zksynctest.Delay(time.Second)})
	}
	check := func(t *testing.T, srv *zksynctest.Server, dir string, ok bool, err error) {
		if left := inLine(srv, dir); ok || err != nil || len(left) > 0 {
			t.Errorf("%v, %v, and %q are left, want false and no znode", ok, err, left)
		}
	}
	t.Run("readers", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			rw := zksync.NewRWMutex(srv.Connect(t), path)
			must(t, rw.RLock(t.Context()))
			<-time.After(time.Second) // later readers do not join the grant of the first one
			lose(t, srv, path, path)
			ok, err := rw.TryRLock(t.Context())
			check(t, srv, path, ok, err)
		})
	})
	t.Run("semaphore", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := zksync.NewSemaphore(srv.Connect(t), sem, 5)
			must(t, s.Acquire(t.Context(), 1))
			<-time.After(time.Second) // the hold is watched
			lose(t, srv, semLocks, semLeases)
			ok, err := s.TryAcquire(t.Context(), 1)
			check(t, srv, semLeases, ok, err)
		})
	})
}
