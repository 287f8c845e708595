package zksync_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// closeAtEachRequest runs test for each of the first requests of a consumer, with
// Close called while that is under way, and its answer lost or not. test returns the
// messages that it got from the queue until its channel was closed.
func closeAtEachRequest(t *testing.T, test func(t *testing.T, q *zksync.Queue) []string) {
	for _, lost := range []bool{false, true} {
		for _, at := range allMoments {
			for nth := 1; nth <= 16; nth++ {
				t.Run(fmt.Sprintf("%v %d lost %v", at, nth, lost), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						q := zksync.NewQueue(m, queuePath)
						offer(t, srv.Connect(t), queuePath, 0, 40)
						closed := make(chan struct{})
						f := zksynctest.Fault{Session: live(t, m).ID(), Nth: nth, At: at, Do: zksynctest.Call(func() {
							go func() {
								defer close(closed)
								closeQueue(t, q)
							}()
							time.Sleep(time.Second)
						})}
						srv.Inject(f)
						if lost {
							f.Do = zksynctest.Disconnect
							srv.Inject(f)
						}
						got := test(t, q)
						<-closed
						next := newQueue(t, srv)
						for {
							data, ok, err := next.TryTake(t.Context())
							if err != nil {
								t.Fatal("TryTake:", err)
							}
							if !ok {
								break
							}
							got = append(got, string(data))
						}
						want(t, got, numbers(0, 40))
						closeQueue(t, next)
						wantLeft(t, srv, 0, 0)
					})
				})
			}
		}
	}
}

// If Close is called during any request of Chan, the next consumer gets the rest, at once and in order.
func TestCloseAtEachRequestOfChan(t *testing.T) {
	closeAtEachRequest(t, func(_ *testing.T, q *zksync.Queue) (got []string) {
		for data := range q.Chan() {
			got = append(got, string(data))
		}
		return got
	})
}

// If Close is called during any request of Messages, the next consumer gets the rest, at once and in order.
func TestCloseAtEachRequestOfMessages(t *testing.T) {
	closeAtEachRequest(t, func(t *testing.T, q *zksync.Queue) (got []string) {
		for msg := range q.Messages() {
			switch err := msg.Ack(t.Context()); {
			case err == nil:
				got = append(got, string(msg.Data))
			case !errors.Is(err, zksync.ErrLost):
				t.Error("Ack:", err)
			}
		}
		return got
	})
}
