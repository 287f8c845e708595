package zksync_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Take succeeds over every connection that lives: also if a round trip takes almost a quarter of the session timeout.
func TestTakeFarFromTheServers(t *testing.T) {
	for kind, open := range threeQueues {
		for _, timeout := range []time.Duration{40 * time.Second, 2 * time.Minute} {
			t.Run(kind+" "+timeout.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					producer, put := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, producer)
					putNow(t, put, "a")
					link := srv.NewLink(t)
					q, _ := open(link.Connect(t, session.WithTimeout(timeout)), usualPrefetch)
					defer closeQueue(t, q)
					link.Delay(timeout * 11 / 100)
					defer link.Delay(0)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began := time.Now()
					if data, err := q.Take(ctx); err != nil || string(data) != "a" {
						t.Errorf("Take: %q, %v after %v; want the message", data, err, time.Since(began))
					}
				}, zksynctest.WithConfig(zkserver.Config{MaxSessionTimeout: timeout}))
			})
		}
	}
}
