package zkserver_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// BenchmarkPipelined is one connection over loopback that always has requests
// outstanding.
func BenchmarkPipelined(b *testing.B) {
	for name, body := range map[string][]byte{
		"exists": append(rec{}.i32(1, int32(zkserver.OpExists)), rec{}.str("/zookeeper").flag(false)...),
		"set":    append(rec{}.i32(1, int32(zkserver.OpSetData)), rec{}.str("/").str("0123456789").i32(-1)...),
	} {
		b.Run(name, func(b *testing.B) {
			s := start(b, zkserver.Config{})
			addr, err := s.Listen("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			nc, err := net.Dial("tcp", addr.String())
			if err != nil {
				b.Fatal(err)
			}
			r := rawOver(b, nc)
			r.hello(0, 0, 0, "")
			r.welcome()
			_ = nc.SetReadDeadline(time.Time{})
			frame := append(rec{}.i32(int32(len(body))), body...)
			begin := time.Now()
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				w := bufio.NewWriterSize(nc, 32<<10)
				for range b.N {
					_, _ = w.Write(frame)
				}
				_ = w.Flush()
			}()
			in := bufio.NewReaderSize(nc, 32<<10)
			for range b.N {
				head, err := in.Peek(4)
				if err != nil {
					b.Fatal(err)
				}
				n := int(binary.BigEndian.Uint32(head))
				if _, err := in.Discard(4 + n); err != nil && err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "requests/s")
		})
	}
}

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
