package watch_test

import (
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// BenchmarkTreeLoad compares a Tree with the same reads made in other ways:
// pipelined by a client that does nothing else, and by goroutines that call the
// session.
func BenchmarkTreeLoad(b *testing.B) {
	const n = 10_000
	srv := zksynctest.Start(b)
	paths := plant(b, live(b, srv.Connect(b)), "/tree", n)
	fresh := func(b *testing.B) *session.Manager {
		m, err := session.Connect(b.Context(), srv.Addr())
		must(b, err)
		live(b, m)
		return m
	}
	b.Run("wire", func(b *testing.B) {
		for b.Loop() {
			byHand(b, srv.Addr(), paths)
		}
	})
	b.Run("calls", func(b *testing.B) {
		for b.Loop() {
			m := fresh(b)
			byCalls(b, live(b, m), paths)
			must(b, m.Close())
		}
	})
	b.Run("Tree", func(b *testing.B) {
		for b.Loop() {
			m := fresh(b)
			load(b, m, "/tree", n)
			must(b, m.Close())
		}
	})
}
