package zkserver_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first run leaves objects with finalizers, and objects in pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// allocated returns the total of all allocated bytes.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// A znode takes about 200 bytes and its data. TestMemoryOfAZnode creates 140,000 znodes, or ten
// times as many with ZKSYNC_LONG=1, in typical patterns: in directories, with their own ACL, and as
// ephemerals of a session.
func TestMemoryOfAZnode(t *testing.T) {
	const limit = 300
	for _, c := range []struct {
		name  string
		dirs  int // with a thousand znodes each
		flags int32
		acl   rec
	}{
		{"persistent", 1000, 0, rec{}.acl(31, "world", "anyone")},
		{"with an ACL", 200, 0, rec{}.acl(31, "digest", "somebody:aGFzaA==", 1, "world", "anyone")},
		{"ephemeral", 200, 1, rec{}.acl(31, "world", "anyone")},
	} {
		t.Run(c.name, func(t *testing.T) {
			dirs := c.dirs / 10
			if !raceDetector {
				dirs = bounds.Size(dirs, c.dirs)
			}
			s := start(t, zkserver.Config{OpsKept: 16})
			r := session(t, s, time.Minute)
			before := heap()
			for d := range dirs {
				if err := s.Create(fmt.Sprintf("/d%03d", d), nil); err != nil {
					t.Fatal(err)
				}
				const together = 50
				for i := 0; i < 1000; i += together {
					list := make([]rec, together)
					for j := range list {
						path := fmt.Sprintf("/d%03d/n%06d", d, i+j)
						list[j] = sub(zkserver.OpCreate, append(rec{}.str(path).str(""), c.acl...).i32(c.flags))
					}
					r.want(0, zkserver.OpMulti, multi(list...))
				}
			}
			n := int64(dirs * 1001)
			per := (heap() - before) / n
			if t.Logf("%d bytes a znode, of %d", per, n); per > limit {
				t.Errorf("%d bytes a znode, want %d at most", per, limit)
			}
			runtime.KeepAlive(s)
		})
	}
}

// Reads allocate nothing. TestAllocations counts the heap allocations of a request: the data of a
// write, a znode with its path and its entry in the list of children for a create, and nothing for
// a read.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames []rec
		limit  float64
	}{
		{"get", []rec{getRoot}, 0},
		{"set", []rec{setRoot}, 1},
		{"create and delete", []rec{
			stock(zkserver.OpCreate, createRec("/load/x", "", 0)),
			stock(zkserver.OpDelete, rec{}.str("/load/x").i32(-1)),
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := streams(t, zkserver.Config{OpsKept: 16}, 1)
			n := bounds.Size(20_000, 50_000)
			load(list, n, c.frames...)
			// The runtime, and buffers that the collector has taken from a pool, only add
			// allocations: the minimum of several runs is the server's own part.
			const slack, tries = 0.05, 5
			count, size := math.Inf(1), math.Inf(1)
			for range tries {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				load(list, n, c.frames...)
				runtime.ReadMemStats(&after)
				count = min(count, float64(after.Mallocs-before.Mallocs)/float64(n))
				size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/float64(n))
			}
			if count > c.limit+slack {
				t.Errorf("%.2f allocations a request, want %v", count, c.limit)
			}
			// With the race detector a pool drops one buffer in four on purpose: then the bytes
			// depend on how many requests arrive in one read.
			if !raceDetector && size > 100*c.limit+64 {
				t.Errorf("%.0f bytes allocated a request", size)
			}
		})
	}
}
