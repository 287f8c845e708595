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
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
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
				t.Error("the long lane was listed again")
			}
		}
	})
}

// A message that is given back goes to its place among the priorities, and messages of the same name with different
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
		synctest.Wait() // it has claimed 2.1
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

// A DelayQueue delivers no message before it is due, and delivers messages in the order of their due times, even if
// an earlier due time was put later.
func TestDelayQueueDelivers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		q := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		ch := q.Chan()
		start := time.Now()
		for _, d := range []time.Duration{time.Hour, 0, 3 * time.Second, 25 * time.Second, 4 * time.Second, time.Millisecond} {
			if err := producer.Put(t.Context(), []byte(d.String()), d); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, want := range []time.Duration{0, time.Millisecond, 3 * time.Second, 4 * time.Second, 25 * time.Second, time.Hour} {
			data := <-ch
			late := time.Since(start) - want
			if string(data) != want.String() || late < 0 || late > 10*time.Millisecond {
				t.Errorf("%s came %v late, want %v", data, late, want)
			}
		}
		// A message that is due earlier than the known messages.
		start = time.Now()
		producer.Put(t.Context(), []byte("later"), 8*time.Second)
		synctest.Wait()
		producer.Put(t.Context(), []byte("sooner"), 2*time.Second)
		if data := <-ch; string(data) != "sooner" || time.Since(start).Round(time.Second) != 2*time.Second {
			t.Errorf("%s came after %v", data, time.Since(start))
		}
		if data := <-ch; string(data) != "later" || time.Since(start).Round(time.Second) != 8*time.Second {
			t.Errorf("%s came after %v", data, time.Since(start))
		}
		closeQueue(t, q)
		if _, ok, err := producer.TryTake(t.Context()); ok || err != nil {
			t.Error("TryTake:", ok, err)
		}
		producer.Put(t.Context(), []byte("not yet"), time.Minute)
		if _, ok, err := producer.TryTake(t.Context()); ok || err != nil {
			t.Error("TryTake before its time:", ok, err)
		}
		start = time.Now()
		if data, err := producer.Take(t.Context()); string(data) != "not yet" || err != nil || time.Since(start) < 59*time.Second {
			t.Errorf("Take: %q, %v, after %v", data, err, time.Since(start))
		}
		closeQueue(t, producer)
	})
}

// A DelayQueue delivers messages in the order of their due times on the embedded server and on a real one.
func TestDelayQueueOnBoth(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		q := zksync.NewDelayQueue(srv.Connect(t), path)
		defer closeQueue(t, q)
		start := time.Now()
		for _, d := range []int{900, 0, 450} {
			// The due times count from one moment, so a slow Put makes no message
			// later.
			if err := q.PutAt(t.Context(), fmt.Append(nil, d), start.Add(time.Duration(d)*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []int{0, 450, 900} {
			data := string(receive(t, q.Chan(), 1)[0])
			if data != fmt.Sprint(d) || time.Since(start) < time.Duration(d)*time.Millisecond {
				t.Errorf("%s came after %v, want %d", data, time.Since(start), d)
			}
		}
	})
}

// A consumer that waits for a message that is due later asks the servers for nothing, and the directories of past times
// are deleted.
func TestDelayQueueIdle(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		q := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, q)
		for i := range 30 {
			if err := producer.Put(t.Context(), fmt.Append(nil, i), time.Duration(i)*10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if err := producer.Put(t.Context(), []byte("tomorrow"), 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		closeQueue(t, producer)
		want(t, receive(t, q.Chan(), 30), numbers(0, 30))
		time.Sleep(5 * time.Minute)
		lanes, _ := srv.Children(queuePath)
		n := 0
		for _, name := range lanes {
			if strings.HasPrefix(name, "t-") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d lanes are left: %v", n, lanes)
		}
		srv.ResetOps()
		time.Sleep(12 * time.Hour)
		if ops := requests(srv); len(ops) > 0 {
			t.Errorf("%d requests in idle hours: %s", len(ops), names(ops))
		}
		time.Sleep(12 * time.Hour)
		want(t, receive(t, q.Chan(), 1), []string{"tomorrow"})
	}, zksynctest.WithConfig(zkserver.Config{Without: []zkserver.OpCode{zkserver.OpCreateContainer}}))
}
