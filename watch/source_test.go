package watch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// reads counts the reads that a server was asked for since ResetOps.
func reads(srv *zksynctest.Server) int {
	n := 0
	for _, op := range srv.Ops() {
		switch op.Code {
		case zkserver.OpGetData, zkserver.OpExists, zkserver.OpGetChildren, zkserver.OpGetChildren2, zkserver.OpMultiRead:
			n++
		}
	}
	return n
}

// A thousand streams of one Manager and path cost one watch and one read for each change.
func TestAThousandStreamsCostOneReadAChange(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		must(t, srv.Create("/a", nil))
		var streams []*watch.Stream[watch.State]
		for range 1000 {
			streams = append(streams, watch.Node(t.Context(), m, "/a"))
		}
		all := func(want string) {
			t.Helper()
			for i, st := range streams {
				if got := next(t, st); string(got.Data) != want {
					t.Fatalf("stream %d is told %q, want %q", i, got.Data, want)
				}
			}
		}
		all("")
		const changes = 20
		srv.ResetOps()
		for i := range changes {
			must(t, srv.Set("/a", fmt.Append(nil, i)))
			all(fmt.Sprint(i))
		}
		if n := reads(srv); n != changes {
			t.Errorf("%d reads for %d changes", n, changes)
		}
		if n := srv.Watches(); n != 1 {
			t.Errorf("%d watches on the server, want 1", n)
		}
		// New subscribers get the known state, and need no read as long as the
		// connection that read it lives.
		srv.ResetOps()
		streams = streams[:0]
		for range 1000 {
			streams = append(streams, watch.Node(t.Context(), m, "/a"))
		}
		all(fmt.Sprint(changes - 1))
		if n := reads(srv); n != 0 {
			t.Errorf("%d reads for newcomers", n)
		}
		// After a reconnect the znode is read once, for old streams and new ones.
		srv.ResetOps()
		must(t, srv.Disconnect(live(t, m).ID()))
		synctest.Wait()
		live(t, m)
		streams = streams[:0]
		for range 1000 {
			streams = append(streams, watch.Node(t.Context(), m, "/a"))
		}
		all(fmt.Sprint(changes - 1))
		synctest.Wait()
		if n := reads(srv); n != 1 {
			t.Errorf("%d reads after a reconnect, want one", n)
		}
	})
}

// heap returns the size of all reachable objects.
func heap() int64 {
	var ms runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&ms)
	return int64(ms.HeapAlloc)
}

// Streams that have ended leave no goroutine, no memory and no watch.
func TestStreamsThatWereGivenUpLeaveNothing(t *testing.T) {
	const total, batch = 100_000, 1000
	bounds.Bubble(t, func(t *testing.T) {
		// The log of operations would be the only thing to grow.
		srv := zksynctest.Start(t, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
		m := srv.Connect(t)
		must(t, srv.Create("/a", nil))
		live(t, m)
		round := func(n int) {
			for range n / batch {
				ctx, cancel := context.WithCancel(t.Context())
				streams := make([]*watch.Stream[watch.State], batch)
				for i := range streams {
					streams[i] = watch.Node(ctx, m, "/a")
				}
				next(t, streams[0])
				if n := srv.Watches(); n != 1 {
					t.Fatalf("%d watches on the server, want 1", n)
				}
				cancel()
				synctest.Wait()
				if _, ok := <-streams[1].Events(); ok {
					<-streams[1].Events()
				}
			}
		}
		round(10 * batch)
		before := heap()
		round(total)
		if n := running(); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
		if grown := heap() - before; grown > 256<<10 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		if n := srv.Watches(); n > 1 {
			t.Errorf("%d watches on the server, want at most 1", n)
		}
	})
}

// Streams that are cancelled before their first event leave nothing.
func TestStreamsThatNeverWere(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		live(t, m)
		var wg sync.WaitGroup
		for range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			st := watch.Node(ctx, m, "/a")
			wg.Go(func() {
				for range st.Events() {
				}
				if !errors.Is(st.Err(), context.Canceled) {
					t.Error(st.Err())
				}
			})
			cancel()
		}
		wg.Wait()
		synctest.Wait()
		if n := running(); n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
		if n := srv.Watches(); n > 1 {
			t.Errorf("%d watches on the server, want at most 1", n)
		}
	})
}

// Streams of distinct paths that have ended leave no watches on the server.
func TestDistinctPathsThatWereGivenUp(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t)
		for i := range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			next(t, watch.Node(ctx, m, fmt.Sprintf("/n%d", i)))
			cancel()
		}
		synctest.Wait()
		if n := srv.Watches(); n > 100 {
			t.Errorf("%d watches on the server after 2000 paths were given up", n)
		}
	})
}

// Streams of different Managers share nothing.
func TestManagersDoNotShare(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		one, two := srv.Connect(t), srv.Connect(t)
		first, second := watch.Node(t.Context(), one, "/a"), watch.Node(t.Context(), two, "/a")
		next(t, first)
		next(t, second)
		must(t, one.Close())
		if err := ended(t, first); !errors.Is(err, session.ErrClosed) {
			t.Error(err)
		}
		must(t, srv.Create("/a", nil))
		if got := next(t, second); !got.Exists {
			t.Errorf("told %+v", got)
		}
	})
}
