package zksync_test

import (
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func benchmark(b *testing.B, goroutines int, opts ...zksync.MutexOption) {
	mu := zksync.NewMutex(zksynctest.Start(b).Connect(b), path, opts...)
	warm(b, mu)
	b.ReportAllocs()
	if goroutines == 1 {
		for b.Loop() {
			lock(b, mu)
			unlock(b, mu)
		}
		return
	}
	b.SetParallelism(goroutines)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := mu.Lock(b.Context()); err != nil {
				b.Error(err)
				return
			}
			unlock(b, mu)
		}
	})
}

func BenchmarkUncontended(b *testing.B)  { benchmark(b, 1) }
func BenchmarkGoroutines64(b *testing.B) { benchmark(b, 32) } // times GOMAXPROCS
func BenchmarkLinger(b *testing.B)       { benchmark(b, 1, zksync.WithLinger(time.Hour)) }
