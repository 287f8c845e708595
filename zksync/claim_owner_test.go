package zksync_test

import (
	"slices"
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

// A message that is gone when it was claimed, and put back while that claim is about
// to go, is not taken for claimed when the answer to the next claim is lost.
func TestClaimWhileTheFormerOneIsAboutToGo(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := zksync.NewQueue(srv.Connect(t), queuePath)
		defer q.Close()
		if err := q.Put(t.Context(), []byte("a")); err != nil {
			t.Fatal(err)
		}
		names, _ := srv.Children(queuePath)
		slices.Sort(names)
		item := queuePath + "/" + names[0]
		claim := queuePath + "/zksync-claims/" + names[0]
		// It goes before it is read, and is back before the claim goes, which takes
		// several tries. The next claim is lost, too.
		removed, refused, lost := false, 0, false
		refuse := map[[2]int64]bool{} // by connection and request, since a fault may look twice
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMultiRead, At: zksynctest.BeforeCommit, Match: func(zkserver.Op) bool { return !removed },
			Do: zkserver.Call(func() { removed = true; srv.Delete(item) })})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Times: 7, Do: zksynctest.Disconnect, Match: func(op zkserver.Op) bool {
			does := func(code zkserver.OpCode) bool {
				return slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool { return sub.Code == code && sub.Path == claim })
			}
			key := [2]int64{int64(op.Conn), int64(op.Xid)}
			if _, known := refuse[key]; known {
				return refuse[key]
			}
			switch {
			case does(zkserver.OpDelete) && refused < 6:
				if refused++; refused == 1 {
					go srv.Create(item, []byte("a"))
				}
				refuse[key] = true
			case does(zkserver.OpCreate) && refused > 0 && !lost:
				lost = true
				refuse[key] = true
			}
			return refuse[key]
		}})
		select {
		case msg := <-q.Messages():
			time.Sleep(10 * time.Second)
			if _, ours := srv.Get(claim); !ours {
				t.Error("received a message without a claim on it")
			}
			if err := msg.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the message was not received")
		}
		if !removed || refused < 6 || !lost {
			t.Errorf("removed: %v, its claim kept %d times, and the next lost: %v", removed, refused, lost)
		}
	})
}
