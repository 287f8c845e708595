package zksync_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// BenchmarkPut64 has 64 goroutines put, on a real server, in turns with raw
// transactions of 64 creates that are sent one at a time. The metric x-raw is the
// median of the ratio of the messages a second by Put to the messages a second by raw
// transactions: the goal is 0.8. An iteration is a turn of each.
func BenchmarkPut64(b *testing.B) {
	const goroutines, each = 64, 400
	m := zksynctest.RealShared(b).Connect(b)
	path := servers.Path(b)
	s := live(b, m)
	data := make([]byte, 100)
	for _, dir := range []string{path + "/raw", path + "/queue"} {
		if err := s.MakeDir(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
	}
	q := zksync.NewQueue(m, path+"/queue")
	defer q.Close()
	var ratios []float64
	var raw, puts time.Duration
	round := func() {
		start := time.Now()
		rawCreates(b, s, path+"/raw/qn-", data, goroutines, each)
		between := time.Now()
		putByMany(b, q, data, goroutines, each)
		r, p := between.Sub(start), time.Since(between)
		raw, puts = raw+r, puts+p
		ratios = append(ratios, r.Seconds()/p.Seconds())
	}
	round() // until both are warm
	ratios, raw, puts = nil, 0, 0
	for b.Loop() {
		round()
	}
	slices.Sort(ratios)
	n := float64(len(ratios) * goroutines * each)
	b.ReportMetric(ratios[len(ratios)/2], "x-raw")
	b.ReportMetric(n/puts.Seconds(), "puts/s")
	b.ReportMetric(n/raw.Seconds(), "raw/s")
}

// rawCreates sends transactions of n creates, one at a time.
func rawCreates(b *testing.B, s *session.Session, path string, data []byte, n, times int) {
	for range times {
		ops := make([]any, n)
		for i := range ops {
			ops[i] = &zk.CreateRequest{Path: path, Data: data, Flags: zk.FlagSequence}
		}
		if _, err := s.Multi(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
}

// putByMany has each of n goroutines put.
func putByMany(b *testing.B, q *zksync.Queue, data []byte, n, times int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for range times {
				if err := q.Put(b.Context(), data); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
