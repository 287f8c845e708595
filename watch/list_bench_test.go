package watch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// delays are how long something took, again and again.
type delays []time.Duration

func (d delays) report(b *testing.B, what string) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)-1].Microseconds())/1000, "ms-longest-"+what)
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, "ms-p99-"+what)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, "ms-median-"+what)
}

// again measures f every millisecond until ctx ends.
func again(ctx context.Context, f func() time.Duration) (d delays) {
	for ctx.Err() == nil {
		d = append(d, f())
		time.Sleep(time.Millisecond)
	}
	return d
}

// An iteration is a child that comes and goes among 100,000 children, until a Tree
// shows it, while the data of another child changes. Meanwhile the same session makes
// requests, as pings are, and receives the events of another watch: the metrics are
// how long these took, and until the Tree showed the change.
func BenchmarkTreeOf100000Children(b *testing.B) {
	b.Run("zkserver", func(b *testing.B) {
		changeLists(b, zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1})).Addr())
	})
	b.Run("ZooKeeper", func(b *testing.B) {
		changeLists(b, zksynctest.RealZooKeeper(b, 1).Servers())
	})
}

func changeLists(b *testing.B, address string) {
	const n = 100_000
	connect := func() *session.Manager {
		m, err := session.Connect(b.Context(), address, session.WithTimeout(40*time.Second))
		must(b, err)
		b.Cleanup(func() { m.Close() })
		return m
	}
	root := "/list"
	writer := live(b, connect())
	for _, path := range []string{root, root + "/dir", root + "/other"} {
		_, err := writer.Create(b.Context(), path, nil, 0)
		must(b, err)
	}
	for i := 0; i < n; {
		var ops []any
		for range 1000 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/dir/node-%06d", root, i)})
			i++
		}
		_, err := writer.Multi(b.Context(), ops...)
		must(b, err)
	}
	m := connect()
	s := live(b, m)
	tree := watch.Tree(b.Context(), m, root+"/dir")
	must(b, tree.WaitSynced(b.Context()))

	ctx, stop := context.WithCancel(b.Context())
	var requests, events delays
	var all sync.WaitGroup
	all.Go(func() {
		requests = again(ctx, func() time.Duration {
			begun := time.Now()
			_, _, err := s.Exists(b.Context(), root+"/other")
			if err != nil {
				b.Error(err)
			}
			return time.Since(begun)
		})
	})
	all.Go(func() {
		events = again(ctx, func() time.Duration {
			_, _, w, err := s.WatchData(b.Context(), root+"/other")
			if err != nil {
				b.Error(err)
			}
			begun := time.Now()
			if _, err := writer.Set(b.Context(), root+"/other", nil, -1); err != nil {
				b.Error(err)
			}
			<-w.Events()
			return time.Since(begun)
		})
	})
	all.Go(func() { // the data of one of the children changes as well
		again(ctx, func() time.Duration {
			if _, err := writer.Set(b.Context(), root+"/dir/node-000000", nil, -1); err != nil {
				b.Error(err)
			}
			return 0
		})
	})
	var shown delays
	shows := func(count int) {
		begun := time.Now()
		for tree.Len() != count {
			time.Sleep(time.Millisecond)
		}
		shown = append(shown, time.Since(begun))
	}
	for b.Loop() {
		// At the same pace however long it takes.
		pace := time.After(500 * time.Millisecond)
		_, err := writer.Create(b.Context(), root+"/dir/new", nil, 0)
		must(b, err)
		shows(n + 2)
		must(b, writer.Delete(b.Context(), root+"/dir/new", -1))
		shows(n + 1)
		<-pace
	}
	stop()
	all.Wait()
	shown.report(b, "shown")
	requests.report(b, "request")
	events.report(b, "event")
}
