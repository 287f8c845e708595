package zkserver_test

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// stream is one connection that always has outstanding requests: it writes as fast as the server
// reads, and reads the replies concurrently.
type stream struct {
	r  *raw
	in *bufio.Reader
}

func stock(op zkserver.OpCode, body rec) rec {
	body = append(rec{}.i32(1, int32(op)), body...)
	return append(rec{}.i32(int32(len(body))), body...)
}

var (
	getRoot = stock(zkserver.OpGetData, rec{}.str("/load").flag(false))
	setRoot = stock(zkserver.OpSetData, rec{}.str("/load").str("0123456789").i32(-1))
)

// streams opens connections over loopback TCP to a server with a znode /load.
func streams(tb testing.TB, cfg zkserver.Config, n int) []*stream {
	tb.Helper()
	s := start(tb, cfg)
	if err := s.Create("/load", nil); err != nil {
		tb.Fatal(err)
	}
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	list := make([]*stream, n)
	for i := range list {
		nc, err := net.Dial("tcp", addr.String())
		if err != nil {
			tb.Fatal(err)
		}
		r := rawOver(tb, nc)
		r.hello(0, time.Minute, 0, "")
		r.welcome()
		_ = nc.SetReadDeadline(time.Time{})
		list[i] = &stream{r, bufio.NewReaderSize(nc, 64<<10)}
	}
	return list
}

// run sends n of the frames in turn, and checks that each was answered with success and in the
// order of commits.
func (st *stream) run(n int, frames ...rec) {
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		w := bufio.NewWriterSize(st.r.nc, 64<<10)
		for i := range n {
			_, _ = w.Write(frames[i%len(frames)])
		}
		_ = w.Flush()
	})
	last := int64(0)
	for range n {
		head, err := st.in.Peek(20)
		if err != nil {
			st.r.t.Error(err)
			return
		}
		zxid, code := int64(binary.BigEndian.Uint64(head[8:])), int32(binary.BigEndian.Uint32(head[16:]))
		if code != 0 || zxid < last {
			st.r.t.Errorf("code %d at %#x, after %#x", code, zxid, last)
			st.r.nc.Close()
			return
		}
		last = zxid
		if _, err := st.in.Discard(4 + int(binary.BigEndian.Uint32(head))); err != nil {
			st.r.t.Error(err)
			return
		}
	}
}

// load runs n requests on each stream, and returns the number of answers per second.
func load(list []*stream, n int, frames ...rec) float64 {
	begin := time.Now()
	var all sync.WaitGroup
	for _, st := range list {
		all.Go(func() { st.run(n, frames...) })
	}
	all.Wait()
	return float64(n*len(list)) / time.Since(begin).Seconds()
}

// BenchmarkPipelined measures the throughput for clients that pipeline their requests.
func BenchmarkPipelined(b *testing.B) {
	for _, c := range []struct {
		name   string
		conns  int
		frames []rec
	}{
		{"get/1", 1, []rec{getRoot}},
		{"set/1", 1, []rec{setRoot}},
		{"mixed/1", 1, []rec{getRoot, setRoot}},
		{"mixed/8", 8, []rec{getRoot, setRoot}},
		{"mixed/64", 64, []rec{getRoot, setRoot}},
	} {
		b.Run(c.name, func(b *testing.B) {
			list := streams(b, zkserver.Config{}, c.conns)
			b.ReportAllocs()
			b.ResetTimer()
			rate := load(list, max(b.N/c.conns, 1), c.frames...)
			b.ReportMetric(rate, "requests/s")
		})
	}
}

// A server carries out 100,000 requests a second. TestThroughput alternates reads and writes. An
// idle machine is much faster; a busy machine has many tries.
func TestThroughput(t *testing.T) {
	floor := 100_000.0
	if raceDetector {
		floor = 10_000
	}
	list := streams(t, zkserver.Config{}, 4)
	best := 0.0
	for deadline := time.Now().Add(30 * time.Second); best < floor && time.Now().Before(deadline); {
		best = max(best, load(list, int(floor/40), getRoot, setRoot))
	}
	if t.Logf("%.0f requests/s", best); best < floor {
		t.Errorf("%.0f requests/s at best, want %.0f", best, floor)
	}
}
