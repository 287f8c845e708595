package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// When the answer to a claim is lost, a claim of the same session that is found is
// not ours if another value made it.
func TestClaimOfAnotherValueOfTheSameSession(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer q.Close()
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		s := live(t, m)
		claims := queuePath + "/zksync-claims"
		if err := s.MakeDir(t.Context(), claims); err != nil {
			t.Fatal(err)
		}
		names, _, err := s.Children(t.Context(), queuePath)
		if err != nil {
			t.Fatal(err)
		}
		claim, err := s.Create(t.Context(), claims+"/"+names[0], []byte("of another"), zk.FlagEphemeral)
		if err != nil {
			t.Fatal(err)
		}
		lost := srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		messages := q.Messages()
		select {
		case msg := <-messages:
			t.Fatalf("received %q, on which another value has a claim", msg.Data)
		case <-time.After(time.Minute):
		}
		if lost.Count() == 0 {
			t.Fatal("no answer was lost")
		}
		if err := s.Delete(t.Context(), claim, -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case msg := <-messages:
			if err := msg.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the message was not received when the claim had gone")
		}
	})
}
