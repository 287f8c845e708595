package watch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A mirror that takes minutes to apply its deliveries delays neither the lease nor
// the requests and watches of others in its session. The line to break: Inbox.event
// only appends.
func TestADelayInTheMirrorDelaysNobodyElse(t *testing.T) {
	var delay atomic.Int64
	defer watch.SetApplyHook(func() { time.Sleep(time.Duration(delay.Load())) })()
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		s := live(t, m)
		plant(t, s, "/r", 300)
		must(t, srv.Create("/other", nil))
		c := watch.Tree(t.Context(), m, "/r")
		must(t, c.WaitSynced(t.Context()))
		held, err := s.Create(t.Context(), "/held", nil, zk.FlagEphemeral)
		must(t, err)
		lease := s.Lease()
		defer lease.End()
		lease.Own(held)
		must(t, lease.Grant(t.Context()))

		delay.Store(int64(time.Minute))
		defer func() { delay.Store(0); time.Sleep(time.Minute) }()
		for i := range 50 {
			must(t, srv.Set(fmt.Sprint("/r/0/", i), nil))
			must(t, srv.Create(fmt.Sprint("/r/new", i), nil))
		}
		for range 100 {
			// Both take no time of the bubble where nothing delays them.
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			_, _, w, err := s.WatchData(ctx, "/other")
			must(t, err)
			must(t, srv.Set("/other", nil))
			select {
			case ev := <-w.Events():
				if ev.Type != zk.EventNodeDataChanged {
					t.Fatalf("event %+v", ev)
				}
			case <-ctx.Done():
				t.Fatal("the event of another watch is late")
			}
			time.Sleep(time.Second)
			if err := s.Err(); err != nil {
				t.Fatal("the lease has lapsed:", err)
			}
		}
		synctest.Wait()
		delay.Store(0)
		time.Sleep(time.Hour)
		mustMirror(t, c, s, "/r")
	})
}
