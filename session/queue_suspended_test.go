package session_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A consumer on a machine that was suspended until its session was lost delivers no message that another consumer
// has received meanwhile, except the message that its channel offered before.
func TestSuspendedConsumerDeliversNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 9
		var suspended atomic.Int64
		m := connect(t, srv, three, session.WithSuspension(func() time.Duration { return time.Duration(suspended.Load()) }))
		q := zksync.NewQueue(m, "/q")
		defer q.Close()
		for i := range n {
			if err := q.Put(t.Context(), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		<-q.Chan()
		synctest.Wait()
		// The clock of the machine stands still while the session expires.
		s := current(t, m)
		srv.Partition(s.ID())
		if err := srv.ExpireSession(s.ID()); err != nil {
			t.Fatal(err)
		}
		other := zksync.NewQueue(connect(t, srv, three), "/q")
		defer other.Close()
		for range n - 1 {
			<-other.Chan()
		}
		suspended.Store(int64(time.Minute))
		late := 0
		for {
			select {
			case <-q.Chan():
				late++
				continue
			case <-time.After(time.Minute):
			}
			break
		}
		if late > 1 {
			t.Errorf("%d messages came that another consumer had received, want at most the one that was offered", late)
		}
	})
}
