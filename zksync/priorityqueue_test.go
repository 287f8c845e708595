package zksync_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func putUrgent(t testing.TB, q *zksync.PriorityQueue, priority, from, to int) {
	t.Helper()
	var all [][]byte
	for i := from; i < to; i++ {
		all = append(all, fmt.Appendf(nil, "%d.%d", priority, i))
	}
	if err := q.PutAll(t.Context(), priority, all...); err != nil {
		t.Fatal("PutAll:", err)
	}
}

func ranked(priority, from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%d.%d", priority, i))
	}
	return all
}

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// A PriorityQueue delivers more urgent messages first, and messages of one priority in the order in which they were
// put.
func TestPriorityQueueDelivers(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		producer := zksync.NewPriorityQueue(m, path)
		for _, priority := range []int{7, 0, 255, 7, 3} {
			putUrgent(t, producer, priority, priority*100, priority*100+20)
		}
		q := zksync.NewPriorityQueue(srv.Connect(t), path)
		seven := ranked(7, 700, 720)
		want(t, receive(t, q.Chan(), 100), join(ranked(0, 0, 20), ranked(3, 300, 320), seven, seven, ranked(255, 25500, 25520)))
		closeQueue(t, q)
		// With Take, too.
		putUrgent(t, producer, 9, 0, 2)
		putUrgent(t, producer, 1, 0, 2)
		for _, want := range join(ranked(1, 0, 2), ranked(9, 0, 2)) {
			data, err := producer.Take(t.Context())
			if err != nil || string(data) != want {
				t.Errorf("took %q, %v, want %s", data, err, want)
			}
		}
		closeQueue(t, producer)
	})
}

// An urgent message overtakes a long backlog that is in memory, without another listing of that backlog.
func TestUrgentMessagesOvertake(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		putUrgent(t, producer, 100, 0, 3000)
		putUrgent(t, producer, 50, 0, 2)
		q := zksync.NewPriorityQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		defer closeQueue(t, q)
		want(t, receive(t, q.Chan(), 10), join(ranked(50, 0, 2), ranked(100, 0, 8)))
		synctest.Wait() // one is claimed ahead
		srv.ResetOps()
		putUrgent(t, producer, 50, 2, 4)
		synctest.Wait()
		want(t, receive(t, q.Chan(), 4), join(ranked(100, 8, 9), ranked(50, 2, 4), ranked(100, 9, 10)))
		synctest.Wait()
		putUrgent(t, producer, 0, 0, 2)
		synctest.Wait()
		want(t, receive(t, q.Chan(), 4), join(ranked(100, 10, 11), ranked(0, 0, 2), ranked(100, 11, 12)))
		for _, op := range srv.Ops() {
			if strings.HasPrefix(op.Code.String(), "getChildren") && op.Path == queuePath+"/p-100" {
				t.Error("the long partition was listed again")
			}
		}
	})
}

// A message that is given back goes to its position among the priorities, and messages of the same name with different
// priorities are different.
func TestPriorityQueueGivesBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		for _, priority := range []int{1, 2, 3} {
			putUrgent(t, producer, priority, 0, 4)
		}
		first := zksync.NewPriorityQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(6))
		messages := first.Messages()
		synctest.Wait()
		second := zksync.NewPriorityQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
		want(t, receive(t, second.Chan(), 1), ranked(2, 0, 1))
		time.Sleep(time.Second) // it has claimed 2.1
		next(t, messages, "1.0")
		ack(t, next(t, messages, "1.1"))
		synctest.Wait()
		closeQueue(t, first)
		synctest.Wait()
		// One was claimed ahead.
		want(t, receive(t, second.Chan(), 10), join(ranked(2, 1, 2), ranked(1, 0, 1), ranked(1, 2, 4), ranked(2, 2, 4), ranked(3, 0, 4)))
		closeQueue(t, second)
	})
}
