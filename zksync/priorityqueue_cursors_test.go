package zksync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A PriorityQueue delivers messages of all priorities in order with a small WithMaxRequest, whatever the number of consumers.
func TestAllPrioritiesWithSmallRequests(t *testing.T) {
	const each = 3
	for _, consumers := range []int{1, 2} {
		t.Run(fmt.Sprint(consumers), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
				defer closeQueue(t, producer)
				var all []string
				for priority := range zksync.MaxPriority + 1 {
					for i := range each {
						data := fmt.Sprintf("%03d/%d", priority, i)
						all = append(all, data)
						must(t, producer.Put(t.Context(), []byte(data), priority))
					}
				}
				type receipt struct {
					consumer int
					data     string
				}
				receipts := make(chan receipt)
				for i := range consumers {
					q := zksync.NewPriorityQueue(srv.Connect(t, session.WithMaxRequest(1024)), queuePath, zksync.WithPrefetch(4))
					defer closeQueue(t, q)
					go func() {
						for data := range q.Chan() {
							receipts <- receipt{i, string(data)}
						}
					}()
				}
				last, seen := make([]string, consumers), make(map[string]bool)
				for range all {
					select {
					case r := <-receipts:
						if seen[r.data] || r.data < last[r.consumer] {
							t.Errorf("consumer %d received %s after %s, seen before: %v", r.consumer, r.data, last[r.consumer], seen[r.data])
						}
						last[r.consumer], seen[r.data] = r.data, true
					case <-time.After(patience):
						t.Fatalf("no message after %d of %d", len(seen), len(all))
					}
				}
			})
		})
	}
}
