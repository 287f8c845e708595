package zksync_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Acquire reports the refusal of a read behind the exchange of the lock for the units, and not a removal: the exchange itself
// has deleted the contender. The units are free afterwards.
func TestAcquireReportsARefusalAfterTheExchange(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder := zksync.NewSemaphore(srv.Connect(t), "/locks/s", 2, zksync.WithLayout(zksync.LayoutKazoo))
		must(t, holder.Acquire(t.Context(), 2))
		sem := zksync.NewSemaphore(srv.Connect(t), "/locks/s", 2, zksync.WithLayout(zksync.LayoutKazoo))
		refused := make(chan error)
		go func() { refused <- sem.Acquire(t.Context(), 2) }()
		<-time.After(time.Second) // of the bubble: by now the contender's znode is watched for its removal
		// The event of the contender's deletion comes well before the answer to the exchange.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Times: -1, Do: zksynctest.Delay(10 * time.Millisecond)})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: "/locks/s/*", Do: zksynctest.Error(zkserver.ErrNoAuth)})
		must(t, holder.Release(2))
		if err := <-refused; !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zksync.ErrRemoved) {
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
