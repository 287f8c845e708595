package zksync_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// createSpans creates directories of a DelayQueue whose spans are over, with one message in each. It returns their paths.
func createSpans(t *testing.T, srv *zksynctest.Server, n int) (dirs []string) {
	t.Helper()
	must(t, srv.Create("/queues", nil))
	must(t, srv.Create(queuePath, nil))
	first := time.Now().Unix()/10*10 - 10*int64(n)
	for i := range int64(n) {
		at := first + 10*i
		dirs = append(dirs, fmt.Sprintf("%s/t-%010d", queuePath, at))
		must(t, srv.Create(dirs[i], nil))
		must(t, srv.Create(fmt.Sprintf("%s/qn-%013d-0000000000", dirs[i], at*1000), []byte(fmt.Sprint(i))))
	}
	return dirs
}

// deletesSpans reports whether an operation is a multi that deletes directories of createSpans.
func deletesSpans(op zkserver.Op) bool {
	return op.Code == zkserver.OpMulti && slices.ContainsFunc(op.Sub, func(sub zkserver.SubOp) bool {
		return sub.Code == zkserver.OpDelete && strings.HasPrefix(sub.Path, queuePath+"/t-") && strings.Count(sub.Path, "/") == 3
	})
}

// After an outage, with one message in each of many spans that are over, the directories of the spans are deleted
// many at a time, and no message that falls due meanwhile waits for them.
func TestDelayQueueAfterAnOutage(t *testing.T) {
	for _, of := range []struct{ spans, consumers int }{{400, 1}, {200, 4}} {
		t.Run(fmt.Sprint(of.spans, " spans, ", of.consumers, " consumers"), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				dirs := createSpans(t, srv, of.spans)
				received := make(chan []byte)
				for range of.consumers {
					c := zksync.NewDelayQueue(srv.Connect(t), queuePath)
					defer closeQueue(t, c)
					go func() {
						for data := range c.Chan() {
							received <- data
						}
					}()
				}
				for range of.spans {
					<-received
				}
				var deletions atomic.Int64
				srv.Inject(zksynctest.Fault{Times: -1, Match: func(op zkserver.Op) bool {
					if deletesSpans(op) {
						deletions.Add(1)
					}
					return false
				}})
				q := zksync.NewDelayQueue(srv.Connect(t), queuePath)
				defer closeQueue(t, q)
				for range 240 {
					time.Sleep(500 * time.Millisecond)
					put := time.Now()
					must(t, q.Put(t.Context(), []byte("new"), 0))
					<-received
					if late := time.Since(put); late > time.Second {
						t.Fatalf("a message came %v late", late)
					}
				}
				for _, dir := range dirs {
					if _, ok := srv.Get(dir); ok {
						t.Errorf("%s is left", dir)
					}
				}
				// Each consumer tries, and the spans of the new messages fall due one by one.
				if n, most := deletions.Load(), int64((of.spans/50+20)*of.consumers); n > most {
					t.Errorf("%d transactions deleted directories, want at most %d", n, most)
				}
			})
		})
	}
}

// A consumer that may not delete the directories of spans tries a few times, and delivers meanwhile.
func TestDelayQueueWhoseSpansMayNotBeDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const spans = 400
		createSpans(t, srv, spans)
		must(t, srv.SetACL(queuePath, []zkserver.ACL{{Perms: zk.PermAll &^ zk.PermDelete, Scheme: "world", ID: "anyone"}}))
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, q)
		for range spans {
			<-q.Chan()
		}
		deletions := srv.Inject(zksynctest.Fault{
			Session: live(t, m).ID(), Match: deletesSpans, Times: -1, Do: zksynctest.Call(func() {}),
		})
		time.Sleep(2 * time.Minute)
		must(t, q.Put(t.Context(), []byte("new"), 0))
		<-q.Chan()
		time.Sleep(time.Hour)
		if n := deletions.Count(); n > spans/40 {
			t.Errorf("%d transactions were to delete directories, want at most %d", n, spans/40)
		}
	})
}

// A message that comes into one of many spans while their directories are being deleted is delivered, and the other
// directories are deleted.
func TestMessageComesIntoASpanThatIsBeingDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		dirs := createSpans(t, srv, 10)
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, q)
		for range dirs {
			<-q.Chan()
		}
		late := dirs[4] + "/qn-" + strings.TrimPrefix(dirs[4], queuePath+"/t-") + "000-0000000001"
		srv.Inject(zksynctest.Fault{
			Session: live(t, m).ID(), Match: deletesSpans,
			Do: zksynctest.Call(func() { must(t, srv.Create(late, []byte("late"))) }),
		})
		select {
		case data := <-q.Chan():
			if string(data) != "late" {
				t.Errorf("%q was delivered, want the late message", data)
			}
		case <-time.After(10 * time.Minute):
			t.Fatal("the late message was not delivered")
		}
		time.Sleep(10 * time.Minute)
		for _, dir := range dirs {
			if _, ok := srv.Get(dir); ok {
				t.Errorf("%s is left", dir)
			}
		}
	})
}

// A consumer without work asks nothing while another consumer has the only message of a span that is over.
func TestConsumerBesideASpanThatAnotherHolds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		createSpans(t, srv, 1)
		first := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, first)
		held := <-first.Messages()
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, q)
		idle := q.Messages()
		time.Sleep(5 * time.Minute)
		asked := srv.Inject(zksynctest.Fault{
			Session: live(t, m).ID(), Times: 1000, // a consumer that spins stops the clock of the bubble
			Match: func(op zkserver.Op) bool { return !heartbeat(op) }, Do: zksynctest.Call(func() {}),
		})
		time.Sleep(time.Hour)
		if n := asked.Count(); n > 10 {
			t.Errorf("%d requests in an hour, want next to none", n)
		}
		must(t, held.Nack(t.Context()))
		select {
		case <-idle:
		case <-first.Messages():
		}
	})
}
