package session_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
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

func BenchmarkSet(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	create(b, s, "/n", 0)
	data := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Set(b.Context(), "/n", data, -1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateProtectedAndDelete(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	b.ReportAllocs()
	for b.Loop() {
		path, err := s.CreateProtected(b.Context(), "/n-", nil, zk.FlagEphemeralSequential)
		if err == nil {
			err = s.Delete(b.Context(), path, -1)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// An iteration reads 128 znodes in one request.
func BenchmarkMultiRead(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	s := current(b, srv.Connect(b))
	create(b, s, "/n", 0)
	reads := slices.Repeat([]session.Read{session.ReadData("/n")}, 128)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.MultiRead(b.Context(), reads...); err != nil {
			b.Fatal(err)
		}
	}
}

// An iteration opens a session and closes it.
func BenchmarkConnect(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	b.ReportAllocs()
	for b.Loop() {
		m, err := session.Connect(b.Context(), three, session.WithDialer(srv.Dial))
		if err == nil {
			_, err = m.Session(b.Context())
		}
		if err == nil {
			err = m.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObserver measures a request without an observer, and with an observer that counts.
func BenchmarkObserver(b *testing.B) {
	for name, opts := range map[string][]session.Option{
		"absent": nil,
		"present": {session.WithObserver(session.Observer{RequestDone: func() func(session.RequestDone) {
			var latency atomic.Int64
			return func(e session.RequestDone) { latency.Add(int64(e.Latency)) }
		}()})},
	} {
		b.Run(name, func(b *testing.B) {
			s := current(b, zksynctest.Start(b).Connect(b, opts...))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Sync(b.Context(), "/"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
