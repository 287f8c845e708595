package zksync_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// When many consumers begin to share a long queue at the same moment, the requests for each message do not grow with
// the square of their number.
func TestManyConsumersOfALongQueue(t *testing.T) {
	for consumers, most := range map[int]float64{8: 2, 64: 20} {
		t.Run(fmt.Sprint(consumers), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				const total = 1000
				var received atomic.Int64
				var wg sync.WaitGroup
				var queues []*zksync.Queue
				for range consumers {
					q := newQueue(t, srv)
					queues = append(queues, q)
					wg.Go(func() {
						for range q.Chan() {
							received.Add(1)
						}
					})
				}
				synctest.Wait()
				// Requests take time, so that their order does not depend on the
				// machine.
				srv.Inject(zksynctest.Fault{Times: -1, Do: zksynctest.Delay(time.Millisecond)})
				srv.ResetOps()
				offer(t, srv.Connect(t), queuePath, 0, total)
				time.Sleep(10 * time.Second)
				requests := 0
				for _, op := range srv.Ops() {
					if op.Code != zkserver.OpPing && op.Code != zkserver.OpWatchEvent {
						requests++
					}
				}
				if each := float64(requests) / total; each > most {
					t.Errorf("%.2f requests a message, want at most %v", each, most)
				}
				if n := received.Load(); n != total {
					t.Errorf("%d messages were received, want %d", n, total)
				}
				for _, q := range queues {
					closeQueue(t, q)
				}
				wg.Wait()
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}
