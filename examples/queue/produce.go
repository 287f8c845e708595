package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// produce puts n orders, one after the other, and tells of each how long that
// took: with a bounded queue, as long as there is no room.
func produce(ctx context.Context, q *zksync.Queue, n int, tell func(order int, took time.Duration)) error {
	for order := 1; order <= n; order++ {
		start := time.Now()
		if err := q.Put(ctx, fmt.Appendf(nil, "order %d", order)); err != nil {
			return err
		}
		tell(order, time.Since(start))
	}
	return nil
}
