package zksync_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A message that is put when its time has been over for long, because the Put has waited
// for a connection, is put and delivered while consumers wait (partition.go: firstListed in expiry).
// The same holds for a producer with a clock that is behind: its messages go to the same
// directories.
func TestDelayQueuePutBehindItsTime(t *testing.T) {
	for _, outage := range []time.Duration{65 * time.Second, 75 * time.Second, time.Hour} {
		t.Run(outage.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				var away atomic.Bool
				m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					if away.Load() {
						return nil, errors.New("away")
					}
					return srv.Dial(ctx, network, address)
				}))
				producer := zksync.NewDelayQueue(m, queuePath)
				defer closeQueue(t, producer)
				if err := producer.Put(t.Context(), []byte("first"), 0); err != nil {
					t.Fatal(err)
				}
				q := zksync.NewDelayQueue(srv.Connect(t), queuePath)
				want(t, receive(t, q.Chan(), 1), []string{"first"})
				other := zksync.NewDelayQueue(srv.Connect(t), queuePath)
				other.Messages()
				away.Store(true)
				srv.Partition(live(t, m).ID())
				put := background(t.Context(), func(ctx context.Context) error { return producer.Put(ctx, []byte("late"), 0) })
				time.Sleep(outage)
				// Puts take a moment, in which the consumers act.
				srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(5 * time.Millisecond)})
				away.Store(false)
				if err := <-put; err != nil {
					t.Error("Put:", err)
				}
				// other may have it in advance.
				closeQueue(t, other)
				want(t, receive(t, q.Chan(), 1), []string{"late"})
				synctest.Wait()
				time.Sleep(2 * time.Hour)
				if left := partitionsLeft(srv); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				closeQueue(t, q)
			})
		})
	}
}

// partitionsLeft are the directories of a DelayQueue at queuePath.
func partitionsLeft(srv *zksynctest.Server) (left []string) {
	names, _ := srv.Children(queuePath)
	for _, name := range names {
		if name[0] == 't' {
			left = append(left, name)
		}
	}
	return left
}
