package zksync_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// sortedNames is names for requests that go out together, in any order.
func sortedNames(ops []zksynctest.Op) string {
	all := strings.Fields(names(ops))
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A waiter that has at least two in front makes seven requests for one lock, in a
// line of any length: it joins, watches its own znode, lists, and watches the two
// nearest; it lists again when the farther one goes; and it leaves. The first waiter
// behind the holder has no farther one.
func TestHandOverRequestsDoNotGrowWithTheLine(t *testing.T) {
	for _, waiters := range []int{8, 64, 256, 1000 / slowdown} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var managers []*session.Manager
			for range 20 {
				managers = append(managers, srv.Connect(t))
			}
			var locks []*zksync.Mutex
			for i := range waiters {
				locks = append(locks, zksync.NewMutex(managers[i%len(managers)], path))
				warm(t, locks[i])
			}
			gate := zksync.NewMutex(managers[0], path)
			lock(t, gate)
			srv.ResetOps()
			var wg sync.WaitGroup
			for _, mu := range locks {
				wg.Go(func() {
					lock(t, mu)
					time.Sleep(time.Millisecond)
					unlock(t, mu)
				})
			}
			synctest.Wait()
			wantInLine(t, srv, waiters+1)
			unlock(t, gate)
			wg.Wait()
			count := make(map[zksynctest.OpCode]int)
			ops := requests(srv)
			for _, op := range ops {
				count[op.Code]++
			}
			want := map[zksynctest.OpCode]int{
				zkserver.OpMulti:        waiters,
				zkserver.OpGetData:      3*waiters - 1,
				zkserver.OpGetChildren2: 2*waiters - 1,
				zkserver.OpDelete:       waiters + 1, // and the gate's
			}
			for code, n := range want {
				if count[code] != n {
					t.Errorf("%d waiters: %d x %v, want %d", waiters, count[code], code, n)
				}
				delete(count, code)
			}
			if len(count) > 0 {
				t.Errorf("%d waiters: %v besides", waiters, count)
			}
		})
	}
}

// An uncontended hold of each primitive makes a fixed number of requests.
func TestUncontendedHoldsCost(t *testing.T) {
	type primitive struct {
		acquire func(context.Context) error
		release func() error
		short   string // held for less than 100 ms
		long    string // held for longer
	}
	of := func(m *session.Manager) map[string]primitive {
		mu, ctxMu := zksync.NewMutex(m, "/mutex"), zksync.NewMutex(m, "/mutex-context")
		tryMu := zksync.NewMutex(m, "/mutex-try")
		rw, readers, tryReaders := zksync.NewRWMutex(m, "/rw"), zksync.NewRWMutex(m, "/readers"), zksync.NewRWMutex(m, "/try-readers")
		sem, trySem := zksync.NewSemaphore(m, "/sem", 3), zksync.NewSemaphore(m, "/try-sem", 3)
		election := zksync.NewElection(m, "/election")
		taken := func(ok bool, err error) error {
			if err == nil && !ok {
				t.Error("what was free was not taken")
			}
			return err
		}
		const two, twoLong = "multi delete", "multi getData delete"
		// A semaphore's contender is exchanged for leases.
		const semaphore, semaphoreLong = "multi getChildren2 multi delete", "multi getChildren2 multi getData delete"
		return map[string]primitive{
			"Lock":        {mu.Lock, mu.Unlock, two, twoLong},
			"LockContext": {func(ctx context.Context) error { _, err := ctxMu.LockContext(ctx); return err }, ctxMu.Unlock, two, twoLong},
			"TryLock":     {func(ctx context.Context) error { return taken(tryMu.TryLock(ctx)) }, tryMu.Unlock, two, twoLong},
			"writer":      {rw.Lock, rw.Unlock, two, twoLong},
			"reader":      {readers.RLock, readers.RUnlock, two, twoLong},
			"TryRLock":    {func(ctx context.Context) error { return taken(tryReaders.TryRLock(ctx)) }, tryReaders.RUnlock, two, twoLong},
			"Acquire":     {func(ctx context.Context) error { return sem.Acquire(ctx, 1) }, func() error { return sem.Release(1) }, semaphore, semaphoreLong},
			"TryAcquire":  {func(ctx context.Context) error { return taken(trySem.TryAcquire(ctx, 1)) }, func() error { return trySem.Release(1) }, semaphore, semaphoreLong},
			"Campaign":    {func(ctx context.Context) error { _, err := election.Campaign(ctx); return err }, election.Resign, two, twoLong},
		}
	}
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for name, p := range of(srv.Connect(t)) {
			must(t, p.acquire(t.Context())) // sees what the directory is
			must(t, p.release())
			for _, held := range []time.Duration{0, 99 * time.Millisecond, 101 * time.Millisecond, time.Hour} {
				srv.ResetOps()
				must(t, p.acquire(t.Context()))
				time.Sleep(held)
				must(t, p.release())
				want := p.short
				if held > 100*time.Millisecond {
					want = p.long
				}
				if got := names(requests(srv)); got != want {
					t.Errorf("%s, held for %v: %s, want %s", name, held, got, want)
				}
			}
		}
	})
}

// A try on a lock that another contender holds takes four requests, of which two go out together. An attempt through a
// value that holds, or waits, itself takes none.
func TestTryingInVainCosts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		here, there := srv.Connect(t), srv.Connect(t)
		refused := func(name, want string, try func(context.Context) (bool, error)) {
			t.Helper()
			if _, err := try(t.Context()); err != nil { // sees what the directory is
				t.Errorf("%s: %v", name, err)
			}
			srv.ResetOps()
			if ok, err := try(t.Context()); ok || err != nil {
				t.Errorf("%s of what is taken: %v, %v", name, ok, err)
			}
			if got := sortedNames(requests(srv)); got != want {
				t.Errorf("%s in vain: %s, want %s", name, got, want)
			}
		}
		const inVain = "delete getChildren2 getData multi"

		mu, other := zksync.NewMutex(here, "/mutex"), zksync.NewMutex(there, "/mutex")
		must(t, mu.Lock(t.Context()))
		refused("TryLock", inVain, other.TryLock)
		refused("TryLock by the holder", "", mu.TryLock)

		writer, rw := zksync.NewRWMutex(here, "/rw"), zksync.NewRWMutex(there, "/rw")
		must(t, writer.Lock(t.Context()))
		refused("TryLock of a writer", inVain, rw.TryLock)
		refused("TryRLock", inVain, rw.TryRLock)

		// It is alone in the line, and finds no lease free.
		holder, sem := zksync.NewSemaphore(here, "/sem", 2), zksync.NewSemaphore(there, "/sem", 2)
		must(t, holder.Acquire(t.Context(), 2))
		refused("TryAcquire", "delete getChildren2 multi", func(ctx context.Context) (bool, error) { return sem.TryAcquire(ctx, 1) })
	})
}

// Further readers of one value make no request: the request of the first reader is all.
func TestReadersOfAValueCostOneHold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw := zksync.NewRWMutex(srv.Connect(t), path)
		must(t, rw.RLock(t.Context()))
		must(t, rw.RUnlock())
		srv.ResetOps()
		const n = 100
		for range n {
			must(t, rw.RLock(t.Context()))
		}
		for range n {
			must(t, rw.RUnlock())
		}
		if got := names(requests(srv)); got != "multi delete" {
			t.Errorf("%d readers that overlap: %s", n, got)
		}
	})
}
