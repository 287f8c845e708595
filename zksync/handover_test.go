package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// lineUp makes n values over ten sessions, and has one after the other wait.
func lineUp[V any](t *testing.T, srv *zksynctest.Server, n int, make func(*session.Manager) V, wait func(i int, v V) error) (all []V, waiting []<-chan error) {
	var managers []*session.Manager
	for range 10 {
		managers = append(managers, srv.Connect(t))
	}
	for i := range n {
		v := make(managers[i%len(managers)])
		all = append(all, v)
		waiting = append(waiting, start(func() error { return wait(i, v) }))
	}
	return all, waiting
}

func newRWMutex(m *session.Manager) *zksync.RWMutex { return zksync.NewRWMutex(m, path) }

// A reader is granted by the deletion of the one writer before it, without a
// request; a writer that goes ahead wakes no reader behind another.
func TestHandOverToReaders(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		first, second := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, first.Lock(t.Context()))
		next := start(func() error { return second.Lock(t.Context()) })
		const n = 200
		locks, waiting := lineUp(t, srv, n, newRWMutex, func(_ int, rw *zksync.RWMutex) error { return rw.RLock(t.Context()) })
		last := newRWMutex(srv.Connect(t))
		behind := start(func() error { return last.Lock(t.Context()) })
		srv.ResetOps()
		must(t, first.Unlock())
		over(t, "the second writer", next)
		if ops := requests(srv); len(ops) > 2 {
			t.Errorf("a hand-over between writers, with %d readers waiting: %s", n, names(ops))
		}
		srv.ResetOps()
		before := time.Now()
		must(t, second.Unlock())
		for _, done := range waiting {
			over(t, "a reader", done)
		}
		if ops := requests(srv); len(ops) > 1+2*n || !time.Now().Equal(before) {
			t.Errorf("letting %d readers in: %d requests, %v", n, len(ops), time.Since(before))
		}
		for i, rw := range locks {
			pending(t, "the last writer", behind)
			srv.ResetOps()
			must(t, rw.RUnlock())
			synctest.Wait()
			if ops := requests(srv); len(ops) > 6 {
				t.Errorf("the end of reader %d costs %s", i, names(ops))
			}
		}
		over(t, "the last writer", behind)
		must(t, last.Unlock())
	})
}

// A hand-over between writers takes no request of the next writer, for any number of writers that wait.
func TestHandOverBetweenWriters(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n = 200
		locks, waiting := lineUp(t, srv, n, newRWMutex, func(_ int, rw *zksync.RWMutex) error { return rw.Lock(t.Context()) })
		for i := range n {
			over(t, "a writer", waiting[i])
			srv.ResetOps()
			must(t, locks[i].Unlock())
			synctest.Wait()
			// The delete, the listing by which the next writer makes sure, and the
			// requests by which the writer after that renews its watches.
			if ops := requests(srv); len(ops) > 6 {
				t.Fatalf("hand-over %d with %d waiting: %s", i, n-i, names(ops))
			}
			if i+2 < n && srv.Ops()[0].Code == zkserver.OpDelete {
				pending(t, "the one after", waiting[i+2])
			}
		}
	})
}
