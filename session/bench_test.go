package session_test

import (
	"testing"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func BenchmarkGet(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	create(b, s, "/n", 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Get(b.Context(), "/n"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetParallel(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	create(b, s, "/n", 0)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := s.Get(b.Context(), "/n"); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkWatchAndStop(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	create(b, s, "/n", 0)
	b.ReportAllocs()
	for b.Loop() {
		_, _, w, err := s.WatchData(b.Context(), "/n")
		if err != nil {
			b.Fatal(err)
		}
		w.Stop()
	}
}
