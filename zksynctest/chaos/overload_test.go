//go:build unix

package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/internal/realzk"
)

// throttling makes servers refuse requests that have waited for more than 20 ms while 30 other
// requests were handled.
var throttling = zksynctest.RealJVM(
	"-Dzookeeper.request_throttle_max_requests=30",
	"-Dzookeeper.request_throttle_stall_time=10",
	"-Dzookeeper.throttled_op_wait_time=20",
)

// overload keeps more requests in a server than it handles at a time, so that it refuses requests
// of all clients.
func overload(ctx context.Context, address string, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	m, err := session.Connect(ctx, address, session.WithTimeout(sessionTimeout))
	if err != nil {
		return // the server is down
	}
	defer m.Close()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = m.Do(ctx, func(ctx context.Context, s *session.Session) error {
					_, _, err := s.Exists(ctx, "/")
					return err
				})
			}
		})
	}
	wg.Wait()
}

// throttled returns the number of requests that a server has refused since its start, 0 if it does
// not answer.
func throttled(ctx context.Context, address string) int {
	answer, _ := realzk.Ask(ctx, address, "mntr")
	n, _ := realzk.Metric(answer, "zk_throttled_ops")
	return n
}
