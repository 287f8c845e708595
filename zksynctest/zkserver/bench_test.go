package zkserver_test

import (
	"testing"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// BenchmarkFirstSession is what a test pays for a server of its own.
func BenchmarkFirstSession(b *testing.B) {
	for b.Loop() {
		s, err := zkserver.New(zkserver.Config{})
		if err != nil {
			b.Fatal(err)
		}
		nc, err := s.Dial(b.Context(), "tcp", "127.0.0.1:2181")
		if err != nil {
			b.Fatal(err)
		}
		r := raw{t: b, nc: nc}
		r.hello(0, 0, 0, "")
		r.welcome()
		s.Close()
	}
}
