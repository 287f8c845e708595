package zksync_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Two values of one session do not take each other's claims for their own, even if the answer to a claim is lost.
func TestClaimOfAnotherValueOfTheSameSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q, other := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1)), zksync.NewQueue(m, queuePath)
		defer other.Close()
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		next(t, q.Messages(), "a")
		lost := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		messages := other.Messages()
		put(t, other, "b")
		next(t, messages, "b")
		select {
		case msg := <-messages:
			t.Fatalf("received %q, on which another value has a claim", msg.Data)
		case <-time.After(time.Minute):
		}
		if lost.Count() == 0 {
			t.Fatal("no answer was lost")
		}
		closeQueue(t, q)
		ack(t, next(t, messages, "a"))
	})
}
