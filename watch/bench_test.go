package watch_test

import (
	"testing"

	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An iteration is a change on the server until the stream has told of it.
func BenchmarkNode(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	must(b, srv.Create("/n", nil))
	events := watch.Node(b.Context(), srv.Connect(b), "/n").Events()
	<-events
	b.ReportAllocs()
	for b.Loop() {
		must(b, srv.Set("/n", nil))
		<-events
	}
}

func BenchmarkChildren(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	must(b, srv.Create("/n", nil))
	events := watch.Children(b.Context(), srv.Connect(b), "/n").Events()
	<-events
	b.ReportAllocs()
	for b.Loop() {
		must(b, srv.Create("/n/a", nil))
		<-events
		must(b, srv.Delete("/n/a"))
		<-events
	}
}

// Another subscriber of a znode that is watched already, and the subscriber's end.
func BenchmarkSubscribe(b *testing.B) {
	srv := zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
	must(b, srv.Create("/n", nil))
	m := srv.Connect(b)
	<-watch.Node(b.Context(), m, "/n").Events()
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range watch.Node(b.Context(), m, "/n").All() {
			must(b, err)
			break
		}
	}
}
