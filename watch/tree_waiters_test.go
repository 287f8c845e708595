package watch_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Calls of WaitSynced that wait for the first load do not slow it down: the load does not look at each of them for each znode.
func TestManyWaitersDoNotSlowTheLoad(t *testing.T) {
	const znodes, calls = 5000, 10_000
	load := func(calls int) (took time.Duration) {
		bounds.Bubble(t, func(t *testing.T) {
			srv := zksynctest.Start(t)
			m := srv.Connect(t)
			plant(t, live(t, m), "/r", znodes)
			began := cpuTime()
			c := watch.Tree(t.Context(), m, "/r")
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() { must(t, c.WaitSynced(t.Context())) })
			}
			wg.Wait()
			took = cpuTime() - began
		})
		return took
	}
	alone, together := load(1), load(calls)
	// The calls themselves cost two or three times as much as the load.
	if together > 12*alone {
		t.Errorf("the load took %v of the processors, and %v with %d calls", alone, together, calls)
	}
}

// cpuTime returns the time of processors that this process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // the arguments are right
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
