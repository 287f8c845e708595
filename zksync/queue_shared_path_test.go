package zksync_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A queue of one kind keeps the claims of a queue of another kind at the same path.
func TestQueuesOfSeveralKindsShareAPath(t *testing.T) {
	for kind, open := range threeQueues {
		for otherKind, openOther := range threeQueues {
			if kind == otherKind {
				continue
			}
			t.Run(kind+" beside "+otherKind, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					q, put := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, q)
					putNow(t, put, "a")
					held := next(t, q.Messages(), "a")
					other, putOther := openOther(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, other)
					putNow(t, putOther, "x")
					ack(t, next(t, other.Messages(), "x"))
					late, _ := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, late)
					select {
					case msg := <-late.Messages():
						t.Errorf("%q, which another consumer has, was delivered again", msg.Data)
					case <-time.After(3 * time.Minute):
					}
					ack(t, held)
				})
			})
		}
	}
}
