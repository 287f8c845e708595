package watch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A WaitSynced that its ctx ends during an outage says so, and names the servers (Manager.Cancelled).
func TestWaitSyncedSaysThatNoServerCanBeUsed(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		c := watch.Tree(context.Background(), m, "/r") // ends with m
		must(t, c.WaitSynced(t.Context()))
		srv.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitSynced(ctx)
		for _, part := range []string{"no server could be used for", "attempts)", "deadline exceeded"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v, want one that says %q", err, part)
			}
		}
		must(t, srv.Start())
	})
}

// A WaitSynced that its ctx ends while a server refuses the reads again and again has the refusal.
func TestWaitSyncedSaysThatReadsAreRefused(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		defer srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Do: zksynctest.Error(-127), Times: -1}).Remove()
		c := watch.Tree(context.Background(), m, "/r") // ends with m
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitSynced(ctx)
		for _, part := range []string{"waiting for a read that has failed", "throttled", "deadline exceeded"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v, want one that says %q", err, part)
			}
		}
	})
}
