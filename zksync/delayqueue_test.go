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
	t.Parallel()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		t.Parallel()
		path := servers.Path(t)
		q := zksync.NewDelayQueue(srv.Connect(t), path)
		defer closeQueue(t, q)
		// The due times count from one moment, so a slow Put makes no message later: the
		// moment is not past before all Puts have returned.
		start := time.Now().Add(3 * time.Second)
		for _, d := range []int{900, 0, 450} {
			if err := q.PutAt(t.Context(), fmt.Append(nil, d), start.Add(time.Duration(d)*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range []int{0, 450, 900} {
			data := string(receive(t, q.Chan(), 1)[0])
			if data != fmt.Sprint(d) || time.Since(start) < time.Duration(d)*time.Millisecond {
				t.Errorf("%s came at %v, want %d", data, time.Since(start), d)
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
		partitions, _ := srv.Children(queuePath)
		n := 0
		for _, name := range partitions {
			if strings.HasPrefix(name, "t-") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d partitions are left: %v", n, partitions)
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
