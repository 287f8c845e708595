package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// After a crash at most 128 received messages come again.
func TestCrashRepeats128(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 6000
		offer(t, srv.Connect(t), queuePath, 0, n)
		dying, die := mortalManager(t, srv)
		q := zksync.NewQueue(dying, queuePath, zksync.WithPrefetch(1024))
		defer q.Close()
		ch := q.Chan()
		received := receive(t, ch, 4000)
		synctest.Wait()
		// From now on the servers do not hear of any removal.
		id := live(t, dying).ID()
		srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Drop})
		for waiting := true; waiting; {
			select {
			case data := <-ch:
				received = append(received, string(data))
			case <-time.After(100 * time.Millisecond):
				waiting = false
			}
		}
		die()
		time.Sleep(time.Minute)
		left, _ := leftItems(srv, queuePath)
		again := len(left) - (n - len(received))
		if again < 1 || again > 128 {
			t.Errorf("%d messages come again of the %d that were received", again, len(received))
		}
	})
}
