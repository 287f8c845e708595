package zksync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// fill puts n messages of 100 bytes into the queue at path, and returns the paths
// of their znodes.
func fill(b *testing.B, m *session.Manager, path string, n int) []string {
	b.Helper()
	q := zksync.NewQueue(m, path)
	defer q.Close()
	for left := n; left > 0; left -= 1024 {
		messages := make([][]byte, min(left, 1024))
		for i := range messages {
			messages[i] = make([]byte, 100)
		}
		if err := q.PutAll(b.Context(), messages...); err != nil {
			b.Fatal(err)
		}
	}
	names, _, err := live(b, m).Children(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		if name[:3] == "qn-" {
			paths = append(paths, path+"/"+name)
		}
	}
	return paths
}

// BenchmarkDelivery compares delivery through Chan with the removal of as many
// znodes by transactions of 128, one at a time, on the same real server in turn.
func BenchmarkDelivery(b *testing.B) {
	const n = 20_000
	e := zksynctest.RealShared(b)
	m := e.Connect(b)
	var ratios, rates []float64
	for b.Loop() {
		b.StopTimer()
		path := servers.Path(b)
		paths := fill(b, m, path+"-raw", n)
		s := live(b, m)
		began := time.Now()
		for len(paths) > 0 {
			k := min(128, len(paths))
			ops := make([]any, k)
			for i, p := range paths[:k] {
				ops[i] = &zk.DeleteRequest{Path: p, Version: -1}
			}
			if _, err := s.Multi(context.Background(), ops...); err != nil {
				b.Fatal(err)
			}
			paths = paths[k:]
		}
		raw := time.Since(began)
		fill(b, m, path, n)
		b.StartTimer()
		began = time.Now()
		q := zksync.NewQueue(m, path)
		ch := q.Chan()
		for range n {
			if _, ok := <-ch; !ok {
				b.Fatal(q.Err())
			}
		}
		q.Close()
		ours := time.Since(began)
		ratios = append(ratios, float64(raw)/float64(ours))
		rates = append(rates, n/ours.Seconds())
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	b.Logf("x-raw: %.2f", ratios)
	b.ReportMetric(rates[len(rates)/2], "msgs/s")
	b.ReportMetric(ratios[len(ratios)/2], "x-raw")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkBacklog delivers from backlogs of different lengths: the cost of a message
// does not depend on how many wait.
func BenchmarkBacklog(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := zksynctest.RealShared(b)
			m := e.Connect(b)
			var took time.Duration
			received := 0
			for b.Loop() {
				b.StopTimer()
				path := servers.Path(b)
				fill(b, m, path, n)
				b.StartTimer()
				began := time.Now()
				for range 100_000 / n {
					q := zksync.NewQueue(m, path)
					ch := q.Chan()
					for range n {
						if _, ok := <-ch; !ok {
							b.Fatal(q.Err())
						}
						received++
					}
					took += time.Since(began)
					q.Close()
					if received%100_000 != 0 {
						fill(b, m, path, n)
					}
					began = time.Now()
				}
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(received), "ns/message")
			b.ReportMetric(0, "ns/op")
		})
	}
}
