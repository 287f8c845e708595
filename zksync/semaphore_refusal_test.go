package zksync_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Acquire reports the refusal of a read behind the exchange of the lock for the units, and not a removal: the exchange itself
// has deleted the contender. The units are free afterwards.
func TestAcquireReportsARefusalAfterTheExchange(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		sem := zksync.NewSemaphore(srv.Connect(t), "/locks/s", 2, zksync.WithLayout(zksync.LayoutKazoo))
		srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/locks/s/*", Do: zksynctest.Error(int32(zkserver.ErrNoAuth))})
		if err := sem.Acquire(t.Context(), 2); !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zksync.ErrRemoved) {
			t.Errorf("Acquire: %v, want the refusal", err)
		}
		if err := sem.Acquire(t.Context(), 2); err != nil {
			t.Error("Acquire afterwards:", err)
		}
		if err := sem.Release(2); err != nil {
			t.Error("Release:", err)
		}
	})
}
