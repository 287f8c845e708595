package zksync_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// totalTraffic returns the number of the requests of some sessions, and the bytes of the
// answers.
func totalTraffic(t *testing.T, srv *zksynctest.Server, ms []*session.Manager) (n, bytes int64) {
	t.Helper()
	for _, m := range ms {
		id := live(t, m).ID()
		bytes += srv.Traffic(id).BytesOut
		n += int64(len(requests(srv, id)))
	}
	return n, bytes
}

// startConsumers starts n consumers of an empty queue, each with its own session. Their
// channels send to the returned one.
func startConsumers(t *testing.T, srv *zksynctest.Server, n int, opts ...zksync.QueueOption) ([]*session.Manager, <-chan string) {
	t.Helper()
	var ms []*session.Manager
	got := make(chan string)
	for range n {
		m := srv.Connect(t)
		ms = append(ms, m)
		q := zksync.NewQueue(m, queuePath, opts...)
		t.Cleanup(func() { q.Close() })
		go func() {
			for data := range q.Chan() {
				got <- string(data)
			}
		}()
	}
	return ms, got
}

// The requests and bytes of consumers that start at the same time grow in proportion to
// their number.
func TestCostOfConsumersThatStart(t *testing.T) {
	perConsumer := func(n int) (requests, bytes float64) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			slow(srv, time.Millisecond)
			ms, _ := startConsumers(t, srv, n)
			time.Sleep(time.Minute)
			r, b := totalTraffic(t, srv, ms)
			requests, bytes = float64(r)/float64(n), float64(b)/float64(n)
		})
		return requests, bytes
	}
	fewRequests, fewBytes := perConsumer(20)
	manyRequests, manyBytes := perConsumer(200 / min(slowdown, 4))
	t.Logf("each of 20 consumers: %.1f requests, %.0f bytes; each of many: %.1f, %.0f", fewRequests, fewBytes, manyRequests, manyBytes)
	if manyRequests > 1.5*fewRequests {
		t.Errorf("%.1f requests for each of many consumers, %.1f for each of 20", manyRequests, fewRequests)
	}
	if manyBytes > 1.5*fewBytes {
		t.Errorf("%.0f bytes for each of many consumers, %.0f for each of 20", manyBytes, fewBytes)
	}
}

// A message to 200 idle consumers costs at most ten requests beside the Put. Only the first
// message costs more: it finds a consumer that has looked before it was in line. Each request
// takes a time. Otherwise the scheduler decides how many such consumers there are, and they
// learn of the line one after another.
func TestCostOfAMessageToIdleConsumers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		slow(srv, time.Millisecond)
		_, got := startConsumers(t, srv, 200/min(slowdown, 4))
		m := srv.Connect(t)
		producer := zksync.NewQueue(m, queuePath)
		defer producer.Close()
		time.Sleep(time.Minute)
		for i := range 12 {
			srv.ResetOps()
			put(t, producer, fmt.Sprint(i))
			if data := <-got; data != fmt.Sprint(i) {
				t.Errorf("received %s, want %d", data, i)
			}
			time.Sleep(time.Minute)
			var others []zksynctest.Op
			for _, op := range requests(srv) {
				if op.Session != live(t, m).ID() && op.Code != zkserver.OpWatchEvent {
					others = append(others, op)
				}
			}
			if i >= 1 && len(others) > 10 {
				t.Errorf("message %d cost %d requests, want at most 10: %s", i, len(others), names(others))
			}
		}
	})
}

// An idle consumer of a DelayQueue does not pay for messages that are due much later.
func TestCostOfMessagesThatAreDueLater(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		ch := q.Chan()
		producer := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		must(t, producer.Put(t.Context(), []byte("first"), 0))
		if data := <-ch; string(data) != "first" {
			t.Fatalf("received %q", data)
		}
		time.Sleep(time.Second)
		before := srv.Traffic(live(t, m).ID())
		for i := range 4000 {
			must(t, producer.Put(t.Context(), nil, 10*time.Hour+time.Duration(i)*time.Second))
		}
		synctest.Wait()
		after := srv.Traffic(live(t, m).ID())
		if n := after.BytesOut - before.BytesOut; n > 2<<20 {
			t.Errorf("4,000 messages for later sent %d bytes to an idle consumer", n)
		}
		closeQueue(t, q)
	})
}
