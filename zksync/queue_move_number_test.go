package zksync_test

import (
	"fmt"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// MoveTo to its own queue takes a later number if another client has created messages with the next numbers, for which
// the consumer has no room. To see this test fail, let SkipNumber return false.
func TestMoveToOwnQueueBehindForeignNumbers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithPrefetch(1))
		offer(t, srv.Connect(t), queuePath, 0, 1)
		msg := next(t, q.Messages(), "0")
		for i := range 3 {
			must(t, srv.Create(fmt.Sprintf("%s/qn-%010d", queuePath, 100+i), fmt.Append(nil, 1+i)))
		}
		must(t, srv.SetNextSequence(queuePath, 100))
		must(t, msg.MoveTo(t.Context(), q))
		for _, data := range []string{"1", "2", "3", "0"} {
			ack(t, next(t, q.Messages(), data))
		}
	})
}
