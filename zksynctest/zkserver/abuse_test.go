package zkserver_test

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Other clients do not notice a misbehaving client. TestOthersDoNotNoticeAbuse measures the latency
// of one client over TCP while other clients misbehave, and compares it with the latency before.
func TestOthersDoNotNoticeAbuse(t *testing.T) {
	s := start(t, zkserver.Config{OpsKept: 1})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dial := func() *raw {
		nc, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Error(err)
			return nil
		}
		return rawOver(t, nc)
	}
	hello := func() *raw {
		r := dial()
		r.hello(0, 40*time.Second, 0, "")
		return r.welcome()
	}
	good := hello()
	for _, path := range []string{"/a", "/b"} {
		good.create(path, 0)
	}
	// The median ignores outliers that other load on the machine causes.
	latency := func() time.Duration {
		took := make([]time.Duration, 1000)
		for i := range took {
			begin := time.Now()
			good.want(0, zkserver.OpSetData, setRec("/a"))
			good.want(0, zkserver.OpGetData, rec{}.str("/a").flag(false))
			took[i] = time.Since(begin)
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	latency()
	alone, before := latency(), heap()

	// Clients that stay connected: slow readers, half handshakes, half frames that announce a long
	// frame, and half four-letter words.
	const slowReaders, events, halves = 20, 5_000, 100
	for range slowReaders {
		hello().addWatch("/b", persistentMode)
	}
	for range events {
		if err := s.Set("/b", nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range halves {
		switch r := dial(); i % 4 {
		case 0: // sends nothing
		case 1:
			r.write(rec{}.i32(44, 0, 0))
		case 2:
			r.write(append(rec{}.i32(1048575), make([]byte, 1000)...))
		case 3:
			r.write([]byte("ru"))
		}
	}
	// Clients that connect again and again.
	stop := make(chan struct{})
	var abuse sync.WaitGroup
	for i := range uint64(4) {
		abuse.Go(func() {
			rng := rand.New(rand.NewPCG(i, 1))
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				malformed(dial(), rng)
			}
		})
	}
	together := latency()
	close(stop)
	abuse.Wait()
	t.Logf("%v alone, %v among the others", alone, together)
	if together > 10*alone+5*time.Millisecond {
		t.Errorf("set and get took %v, and %v without the others", together, alone)
	}
	// The bytes that are queued for the slow readers, and the buffers of the connected clients.
	const bound = slowReaders*events*40*3/2 + (slowReaders+halves)*(40<<10) + 2<<20
	if grown := heap() - before; grown > bound {
		t.Errorf("%d bytes more, should be at most %d", grown, bound)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// malformed sends malformed input and disconnects.
func malformed(r *raw, rng *rand.Rand) {
	if r == nil {
		return
	}
	defer r.nc.Close()
	junk := make([]byte, rng.IntN(200))
	for i := range junk {
		junk[i] = byte(rng.UintN(256))
	}
	pw := make([]byte, 16)
	hello := rec{}.i32(0).i64(0).i32(4000).i64(0).str(string(pw))
	opening := append(rec{}.i32(int32(len(hello))), hello...)
	var b rec
	switch rng.IntN(5) {
	case 0:
		b = junk
	case 1:
		b = rec{}.i32(1048576)
	case 2:
		b = append(opening, rec{}.i32(-1)...)
	case 3:
		body := append(rec{}.i32(1, int32(rng.IntN(110))), junk...)
		b = append(append(opening, rec{}.i32(int32(len(body)))...), body...)
	case 4:
		b = append(append(rec{}.i32(int32(len(junk)+1)), junk...), 0)
	}
	_, _ = r.nc.Write(b)
	_ = r.nc.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	_, _ = io.Copy(io.Discard, r.nc)
}
