package zksync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A TryTake that is given up while it lists leaves the channel of the same value with its watch.
func TestTryTakeGivenUpBesideChan(t *testing.T) {
	for _, op := range []zksynctest.OpCode{zkserver.OpMulti, zkserver.OpGetChildren2} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			q := zksync.NewQueue(m, queuePath)
			ch := q.Chan()
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: op, Do: zksynctest.Call(func() {
				cancel()
				time.Sleep(time.Second)
			})})
			if _, _, err := q.TryTake(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("TryTake: %v", err)
			}
			offer(t, srv.Connect(t), queuePath, 0, 1)
			want(t, receive(t, ch, 1), numbers(0, 1))
			closeQueue(t, q)
			wantLeft(t, srv, 0, 0)
		})
	}
}
