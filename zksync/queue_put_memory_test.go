package zksync_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// heapInUse returns the number of bytes that are reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // the first one may have found objects with finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// While one Put waits for room or for a server, Puts that were given up meanwhile keep none of their data.
func TestPutsThatWereGivenUpKeepNoData(t *testing.T) {
	for _, reason := range []string{"full", "outage"} {
		t.Run(reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				q := newQueue(t, srv, zksync.WithCapacity(1))
				must(t, q.Put(t.Context(), []byte("x")))
				if reason == "outage" {
					srv.Freeze()
				}
				ctx, cancel := context.WithCancel(t.Context())
				waits := make(chan error, 1)
				go func() { waits <- q.Put(ctx, []byte("waits")) }()
				synctest.Wait()
				const n = 300
				data := make([]byte, 100<<10)
				before := heapInUse()
				for range n {
					short, stop := context.WithTimeout(ctx, time.Millisecond)
					if err := q.Put(short, data); err == nil {
						t.Error("a Put has returned nil")
					}
					stop()
				}
				if grown := heapInUse() - before; grown > n*int64(len(data))/3 {
					t.Errorf("the heap has grown by %d kB", grown>>10)
				}
				if reason == "outage" {
					srv.Thaw()
				}
				cancel()
				<-waits
			})
		})
	}
}
