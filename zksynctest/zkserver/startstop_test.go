package zkserver_test

import (
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// firstSession measures the time to start a server and open a session.
func firstSession(tb testing.TB) time.Duration {
	begin := time.Now()
	s, err := zkserver.New(zkserver.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Dial(tb.Context(), "tcp", "127.0.0.1:2181")
	if err != nil {
		tb.Fatal(err)
	}
	r := raw{t: tb, nc: nc}
	r.hello(0, 0, 0, "")
	r.welcome()
	return time.Since(begin)
}

// A server gives out its first session within 5 ms. A busy machine has many tries.
func TestFirstSession(t *testing.T) {
	const limit = 5 * time.Millisecond
	best := time.Hour
	for deadline := time.Now().Add(20 * time.Second); best > limit && time.Now().Before(deadline); {
		best = min(best, firstSession(t))
	}
	if best > limit {
		t.Errorf("%v at best, want %v", best, limit)
	}
}

// Close leaves no goroutine in any state of the server's connections.
func TestAThousandStartsAndStops(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var heaps [2]int64
	for i := range heaps {
		for n := range 500 {
			startAndStop(t, n)
		}
		heaps[i] = heap()
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if grown := heaps[1] - heaps[0]; grown > 1<<20 {
		t.Errorf("five hundred servers left %d bytes", grown)
	}
}

func startAndStop(t *testing.T, n int) {
	size := 1
	if n%10 == 9 {
		size = 3
	}
	s, err := zkserver.NewEnsemble(zkserver.Config{}, size)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	memory := &raw{t: t}
	if memory.nc, err = s.Dial(t.Context(), "tcp", "127.0.0.1:2181"); err != nil {
		t.Fatal(err)
	}
	defer memory.nc.Close()
	memory.hello(0, time.Minute, 0, "")
	memory.welcome()
	memory.create("/e", 1)
	memory.want(0, zkserver.OpGetData, rec{}.str("/e").flag(true))
	switch n % 4 {
	case 0: // a request is on its way
		memory.send(zkserver.OpSetData, rec{}.str("/e").str("x").i32(-1))
	case 1: // a connection has sent nothing yet
		nc, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	case 2:
		s.Partition(memory.id)
	case 3:
		s.Freeze()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
