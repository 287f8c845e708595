package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Constructors do no I/O: they return at once without a server, and send nothing to one.
func TestConstructorsDoNoIO(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		if _, err := m.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		create := func() {
			begun := time.Now()
			zksync.NewMutex(m, "/a", zksync.WithLinger(time.Second))
			zksync.NewRWMutex(m, "/b")
			zksync.NewSemaphore(m, "/c", 3, zksync.WithSizeFrom("/size"))
			zksync.NewElection(m, "/d", zksync.WithLayout(zksync.LayoutEphemeral))
			zksync.NewBarrier(m, "/e")
			zksync.NewDoubleBarrier(m, "/f", 3)
			zksync.NewGroup(m, "/g", zksync.WithIDWait())
			zksync.NewQueue(m, "/h", zksync.WithCapacity(5))
			zksync.NewPriorityQueue(m, "/i")
			zksync.NewDelayQueue(m, "/j")
			if took := time.Since(begun); took > 0 {
				t.Errorf("the constructors took %v", took)
			}
		}
		before := len(srv.Ops())
		create()
		synctest.Wait()
		if ops := srv.Ops()[before:]; len(ops) > 0 {
			t.Errorf("the constructors sent %v", ops)
		}
		srv.Stop()
		synctest.Wait()
		create()
		if err := srv.Server.Start(); err != nil {
			t.Fatal(err)
		}
	})
}
