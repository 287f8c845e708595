package zkserver_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var (
	stormFrames  = flag.Int("frames", 50_000, "how many frames the server of TestStormOfFrames gets from hostile clients")
	stormWatches = flag.Int("watches", 100_000, "how many watches TestMillionsOfWatches has")
)

// slowestAnswer is a generous bound of the time to an answer during an attack, on a busy machine.
const slowestAnswer = 10 * time.Second

// beside sends requests repeatedly while attack runs, and fails if an answer takes too long.
func beside(t *testing.T, r *raw, attack func()) (slowest time.Duration) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		attack()
	}()
	for n := 0; ; n++ {
		begin := time.Now()
		r.want(0, zkserver.OpSetData, setRec("/beside"))
		slowest = max(slowest, time.Since(begin))
		select {
		case <-done:
			if slowest > slowestAnswer {
				t.Errorf("an answer took %v", slowest)
			}
			return slowest
		case <-time.After(time.Millisecond):
		}
	}
}

// requests returns one valid frame of each kind of request.
func requests() (list []rec) {
	ask := func(op zkserver.OpCode, body rec) {
		list = append(list, append(rec{}.i32(1, int32(op)), body...))
	}
	path, watched := rec{}.str("/a"), watchRec("/a")
	for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpExists, zkserver.OpGetChildren, zkserver.OpGetChildren2} {
		ask(op, watched)
	}
	for _, op := range []zkserver.OpCode{
		zkserver.OpSync, zkserver.OpGetACL, zkserver.OpGetEphemerals, zkserver.OpGetAllChildrenNumber, zkserver.OpDeleteContainer,
		zkserver.OpPing, zkserver.OpWhoAmI,
	} {
		ask(op, path)
	}
	ask(zkserver.OpCreate, createRec("/a", "x", 0))
	ask(zkserver.OpCreate2, createRec("/a/s-", "x", 3))
	ask(zkserver.OpCreateContainer, containerRec("/c"))
	ask(zkserver.OpCreateTTL, ttlRec("/t", time.Second))
	ask(zkserver.OpSetData, setRec("/a"))
	ask(zkserver.OpDelete, deleteRec("/a"))
	ask(zkserver.OpCheckWatches, watchTypeRec("/a", anyType))
	ask(zkserver.OpRemoveWatches, watchTypeRec("/a", anyType))
	ask(zkserver.OpAddWatch, watchTypeRec("/", recursiveMode))
	ask(zkserver.OpSetWatches2, rec{}.i64(0).strs("/a").strs("/b").strs("/").strs("/").strs("/c"))
	ask(zkserver.OpSetACL, append(rec{}.str("/a"), open()...).i32(-1))
	ask(zkserver.OpReconfig, rec{}.str("").str("").str("").i64(-1))
	ask(zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b"))
	ask(zkserver.OpSASL, rec{}.str("t"))
	ask(zkserver.OpMulti, multi(sub(zkserver.OpCreate, createRec("/m", "", 2)), sub(zkserver.OpSetData, setRec("/")),
		sub(zkserver.OpCheck, rec{}.str("/").i32(1)), sub(zkserver.OpDelete, deleteRec("/m"))))
	ask(zkserver.OpMultiRead, multi(sub(zkserver.OpGetData, watched), sub(zkserver.OpGetChildren, watched)))
	return list
}

// damage returns a damaged copy of a frame.
func damage(rng *rand.Rand, frame rec) rec {
	b := append(rec(nil), frame...)
	for range 1 + rng.IntN(3) {
		switch at := rng.IntN(len(b)); rng.IntN(6) {
		case 0:
			b[at] ^= 1 << rng.IntN(8)
		case 1:
			b[at] = byte(rng.UintN(256))
		case 2:
			b = b[:max(at, 1)]
		case 3:
			b = append(b, b[at:]...)
		case 4: // a length, or a flag
			if at+4 <= len(b) {
				lengths := []uint32{0, 1, 1<<32 - 1, 1 << 31, 1<<31 - 1, 1 << 20, 1<<32 - 2, uint32(len(b))}
				binary.BigEndian.PutUint32(b[at:], lengths[rng.IntN(len(lengths))])
			}
		case 5: // another operation
			binary.BigEndian.PutUint32(append(b, 0, 0, 0, 0, 0, 0, 0, 0)[4:8], uint32(rng.IntN(112)-1))
		}
		if len(b) > 4096 {
			b = b[:4096]
		}
	}
	return b
}

// hostile sends frames until the server has received the given number, over as many connections as
// necessary, and usually reads the answers. Some frames have a wrong length prefix.
func hostile(t *testing.T, s *zkserver.Server, seed uint64, until int64) {
	rng, kinds := rand.New(rand.NewPCG(seed, 5)), requests()
	pool := make([]rec, 1024)
	for i := range pool {
		pool[i] = damage(rng, kinds[rng.IntN(len(kinds))])
	}
	hello := rec{}.i32(0).i64(0).i32(10000).i64(0).str(string(make([]byte, 16)))
	for s.Received() < until {
		nc, err := s.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Error(err)
			return
		}
		if rng.IntN(10) > 0 {
			go func() { _, _ = io.Copy(io.Discard, nc) }()
		}
		begin := hello
		if rng.IntN(10) == 0 {
			begin = damage(rng, hello)
		}
		_ = nc.SetWriteDeadline(time.Now().Add(5 * time.Second)) // for connections whose answers this client does not read
		b := append(rec{}.i32(int32(len(begin))), begin...)
		frames := 1 + rng.IntN(200)
		for range frames {
			f := kinds[rng.IntN(len(kinds))]
			if rng.IntN(8) == 0 { // many damaged frames end the connection
				k := rng.IntN(len(pool))
				f = pool[k]
				pool[k] = damage(rng, kinds[rng.IntN(len(kinds))])
			}
			length := int32(len(f))
			if rng.IntN(500) == 0 {
				length += int32(rng.IntN(9) - 4)
			}
			b = append(b.i32(length), f...)
			if len(b) > 2<<10 {
				if _, err := nc.Write(b); err != nil {
					break
				}
				b = b[:0]
			}
		}
		_, _ = nc.Write(b)
		nc.Close()
	}
}

// Hostile clients that send damaged frames neither end the server nor make it keep memory or
// goroutines, and another client is served all the time. -frames sets the number of frames.
func TestStormOfFrames(t *testing.T) {
	s := start(t, zkserver.Config{ExtendedTypes: true, FourLetterWords: []string{"*"}, EnforceQuota: true, OpsKept: 1000, TickTime: 100 * time.Millisecond, MaxSessionTimeout: 40 * time.Second})
	if err := s.Create("/beside", nil); err != nil {
		t.Fatal(err)
	}
	other := session(t, s, 40*time.Second)
	before, goroutines := heap(), runtime.NumGoroutine()
	until := s.Received() + int64(*stormFrames)
	slowest := beside(t, other, func() {
		var wg sync.WaitGroup
		for i := range uint64(4) {
			wg.Go(func() { hostile(t, s, i, until) })
		}
		wg.Wait()
	})
	other.want(0, zkserver.OpPing, nil)
	for _, sess := range s.Sessions() {
		if sess.ID != other.id {
			_ = s.ExpireSession(sess.ID)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, and %d before", n, goroutines)
	}
	if n := s.Queued(); n != 0 {
		t.Errorf("%d bytes wait", n)
	}
	if n := s.Watches(); n != 0 {
		t.Errorf("%d watches are left", n)
	}
	if n := len(s.Inconsistencies()); n != 0 {
		t.Error(s.Inconsistencies())
	}
	grown := heap() - before
	t.Logf("%d frames, slowest answer %v, %d bytes more", *stormFrames, slowest, grown)
	// The znodes that they created stay; each frame creates at most one.
	if grown > 16<<20+int64(*stormFrames)*40 {
		t.Errorf("%d bytes are left", grown)
	}
}

// Watches take memory in proportion to their number, about 250 bytes and the path each, and no
// memory after their end. Another client is served while the watches are set and while they fire.
// -watches sets the number of watches.
func TestMillionsOfWatches(t *testing.T) {
	s := start(t, zkserver.Config{OpsKept: 1})
	if err := s.Create("/beside", nil); err != nil {
		t.Fatal(err)
	}
	other := session(t, s, 40*time.Second)
	r := session(t, s, 40*time.Second)
	const frame = 1000
	before := heap()
	slowest := beside(t, other, func() {
		for i := 0; i < *stormWatches; i += frame {
			paths := make([]string, min(frame, *stormWatches-i))
			for j := range paths {
				paths[j] = fmt.Sprintf("/beside/w%08d", i+j)
			}
			r.want(0, zkserver.OpSetWatches, rec{}.i64(s.Zxid()).strs().strs(paths...).strs())
		}
	})
	if n := s.Watches(); n != *stormWatches {
		t.Errorf("%d watches", n)
	}
	grown := heap() - before
	if per := grown / int64(*stormWatches); per > 500 {
		t.Errorf("%d bytes a watch", per)
	}
	fired := beside(t, other, func() {
		for i := range min(*stormWatches, 20_000) {
			path := fmt.Sprintf("/beside/w%08d", i)
			if err := s.Create(path, nil); err != nil {
				t.Error(err)
			}
			if ev := r.event(); ev.path != path {
				t.Errorf("%+v", ev)
			}
			if err := s.Delete(path); err != nil {
				t.Error(err)
			}
		}
	})
	r.nc.Close()
	deadline := time.Now().Add(10 * time.Second)
	for s.Watches() > 0 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	left := heap() - before
	t.Logf("%d watches, %d bytes each, slowest answer %v, %v while they fired, %d bytes left", *stormWatches, grown/int64(*stormWatches), slowest, fired, left)
	if left > 2<<20+grown/20 {
		t.Errorf("%d bytes are left", left)
	}
}
