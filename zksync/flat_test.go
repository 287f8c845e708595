package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Waits that were given up leave memory, goroutines and watches as they were. Very many Locks time out behind a holder:
// on one value, where they wait in its local queue, and on values of their own, where each has a znode for a moment.
func TestGivingUpLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		rounds int
		value  func(m *session.Manager, shared *zksync.Mutex) *zksync.Mutex
	}{
		"one value": {bounds.Size(300, 1000) / slowdown, func(_ *session.Manager, shared *zksync.Mutex) *zksync.Mutex { return shared }},
		"values of their own": {bounds.Size(60, 200) / slowdown, func(m *session.Manager, _ *zksync.Mutex) *zksync.Mutex {
			return zksync.NewMutex(m, path)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				lock(t, zksync.NewMutex(srv.Connect(t), path))
				m := srv.Connect(t)
				shared := zksync.NewMutex(m, path)
				giveUp := func(rounds int) {
					for range rounds {
						var wg sync.WaitGroup
						for range 100 {
							mu := test.value(m, shared)
							wg.Go(func() {
								ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
								defer cancel()
								if err := mu.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
									t.Error(err)
								}
							})
						}
						wg.Wait()
						synctest.Wait()
					}
					wantInLine(t, srv, 1)
				}
				giveUp(5)
				srv.ResetOps()
				before, goroutines, watches := heap(), runtime.NumGoroutine(), srv.Watches()
				giveUp(test.rounds)
				srv.ResetOps()
				if grown := heap() - before; grown > 4<<20 {
					t.Errorf("the heap has grown by %d bytes", grown)
				}
				if n := runtime.NumGoroutine(); n > goroutines+5 {
					t.Errorf("%d goroutines after %d", n, goroutines)
				}
				if n := srv.Watches(); n > watches+100 {
					t.Errorf("%d watches after %d", n, watches)
				}
			})
		})
	}
}

// A Lock that waits takes at most 4 KiB of heap, on the client and the server together, without its znode. The test
// measures 3,000 waiters, or 10,000 with ZKSYNC_LONG=1, and subtracts the heap that as many znodes take on the server. The
// watches are included. What the runtime keeps for a goroutine is no part of it: neither the stack nor the descriptor. A
// waiter has no goroutine but the caller's.
func TestMemoryOfAWaiter(t *testing.T) {
	if slowdown > 1 {
		t.Log("measured without the race detector only: it changes the sizes")
		return
	}
	// The runtime never frees the descriptor of a goroutine, but gives it to a later one. The first round creates as many
	// descriptors as the goroutines take at their most, a number that depends on the scheduler.
	measureWaiters(t)
	if each := measureWaiters(t); each > 4<<10 {
		t.Errorf("a waiting Lock takes %d bytes of heap", each)
	}
}

// measureWaiters returns the bytes of heap that each of many waiting Locks takes, without its znode.
func measureWaiters(t *testing.T) (size int64) {
	waiters := bounds.Size[int64](3_000, 10_000)
	lines := waiters / 15
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var ms []*session.Manager
		for range 10 {
			ms = append(ms, srv.Connect(t))
		}
		lock(t, zksync.NewMutex(ms[0], path))
		ctx, cancel := context.WithCancel(t.Context())
		srv.ResetOps()
		before, goroutines := heap(), runtime.NumGoroutine()
		var wg sync.WaitGroup
		for i := range waiters {
			// Lines of fifteen: each waiter lists its line, and the test does not
			// measure a thousand lists of ten thousand names.
			mu := zksync.NewMutex(ms[i%int64(len(ms))], fmt.Sprint(path, i%lines))
			wg.Go(func() { mu.Lock(ctx) })
		}
		synctest.Wait()
		srv.ResetOps()
		after := heap()
		if n := runtime.NumGoroutine() - goroutines; int64(n) > waiters {
			t.Errorf("%d goroutines for %d waiting Locks", n, waiters)
		}
		for i := range waiters { // measures the server's memory for a znode alone
			srv.Create(fmt.Sprintf("%s%d/_c_0f8fad5b-d9cb-469f-a165-70867728950e-other-%010d", path, i%lines, i), nil)
		}
		each, znode := (after-before)/waiters, (heap()-after)/waiters
		t.Logf("%d bytes of heap for each waiting Lock, of which its znode takes the server %d", each, znode)
		size = each - znode
		cancel()
		wg.Wait()
	})
	return size
}
