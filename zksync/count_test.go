package zksync_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An uncontended Lock and Unlock take two requests and no read, and the first Lock creates the directories above its
// path.
func TestUncontendedIsTwoRequests(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		srv.ResetOps()
		warm(t, mu)
		// A look at the directory, which is not there, nor is the one above it.
		if got := names(requests(srv)); got != "exists createContainer createContainer createContainer multi delete" {
			t.Errorf("the first time: %s", got)
		}
		for _, held := range []time.Duration{0, time.Millisecond, 99 * time.Millisecond} {
			srv.ResetOps()
			lock(t, mu)
			time.Sleep(held)
			unlock(t, mu)
			if got := names(requests(srv)); got != "multi delete" {
				t.Errorf("held for %v: %s", held, got)
			}
		}
		srv.ResetOps()
		other := zksync.NewMutex(srv.Connect(t), path)
		warm(t, other)
		if got := names(requests(srv)); got != "exists multi delete" {
			t.Errorf("the first time in a directory that is there: %s", got)
		}
	})
}

// A long hold takes one more request, for a watch on its own znode.
func TestLongHoldsWatchTheirZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		warm(t, mu)
		srv.ResetOps()
		lock(t, mu)
		time.Sleep(time.Hour)
		unlock(t, mu)
		if got := names(requests(srv)); got != "multi getData delete" {
			t.Errorf("held for an hour: %s", got)
		}
	})
}

// slow makes every answer take d, so that each request shows in fake time.
func slow(srv *zksynctest.Server, d time.Duration) {
	for _, op := range []zksynctest.OpCode{
		zkserver.OpMulti, zkserver.OpGetData, zkserver.OpGetChildren2, zkserver.OpExists, zkserver.OpDelete,
		zkserver.OpCreate, zkserver.OpCreateContainer, zkserver.OpGetChildren, zkserver.OpMultiRead,
	} {
		srv.Inject(zksynctest.Fault{Op: op, Times: -1, At: zksynctest.BeforeReply, Do: zksynctest.Delay(d)})
	}
}

// A hand-over takes no request of the next holder, and waiters are served in the order of their arrival.
func TestHandOverTakesNoRequest(t *testing.T) {
	const n, trip = 10, 10 * time.Millisecond
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ids := make([]int64, n)
		mus := make([]*zksync.Mutex, n)
		for i := range n {
			m := srv.Connect(t)
			ids[i], mus[i] = live(t, m).ID(), zksync.NewMutex(m, path)
			warm(t, mus[i])
		}
		slow(srv, trip)
		granted := make([]time.Time, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				lock(t, mus[i])
				granted[i] = time.Now()
				if i == 0 {
					time.Sleep(20 * trip) // until all have joined
				}
				time.Sleep(trip + time.Millisecond)
				unlock(t, mus[i])
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		checkHandOvers(t, srv, ids, granted)
	})
}

// checkHandOvers expects the sessions to have held in the order of ids.
func checkHandOvers(t *testing.T, srv *zksynctest.Server, ids []int64, granted []time.Time) {
	released := make(map[int64]time.Time)
	for _, op := range srv.Ops() {
		if op.Code == zkserver.OpDelete {
			released[op.Session] = op.Time
		}
	}
	for i := 1; i < len(ids); i++ {
		from, to := released[ids[i-1]], granted[i]
		if !to.Equal(from) {
			t.Errorf("holder %d was granted the lock %v after the release", i, to.Sub(from))
		}
		for _, op := range requests(srv, ids[i]) {
			if !op.Time.Before(from) && !op.Time.After(to) {
				t.Errorf("holder %d asked %v for its grant", i, op.Code)
			}
		}
	}
}

// A release wakes two waiters at most, for any number of waiters.
func TestReleaseWakesTwo(t *testing.T) {
	const waiters = 200
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var wg sync.WaitGroup
		ms := make([]*session.Manager, 20)
		for i := range ms {
			ms[i] = srv.Connect(t)
		}
		first := zksync.NewMutex(ms[0], path)
		lock(t, first)
		for i := range waiters {
			mu := zksync.NewMutex(ms[i%len(ms)], path)
			wg.Go(func() {
				lock(t, mu)
				time.Sleep(time.Second)
				unlock(t, mu)
			})
			synctest.Wait()
		}
		wantInLine(t, srv, waiters+1)
		unlock(t, first)
		time.Sleep(time.Second / 2) // each of the seconds that follow has one release in it
		for range 5 {
			srv.ResetOps()
			seen := srv.Inject(zksynctest.Fault{At: zksynctest.OnWatch, Times: -1})
			time.Sleep(time.Second)
			// The znode's own session may have a watch on it as well.
			if n := seen.Count(); n > 3 {
				t.Errorf("a release sent %d events", n)
			}
			lists := 0
			for _, op := range requests(srv) {
				if op.Code == zkserver.OpGetChildren2 {
					lists++
				}
			}
			if lists != 1 {
				t.Errorf("a release caused %d listings, want that of the next but one: %s", lists, names(requests(srv)))
			}
			seen.Remove()
		}
		wg.Wait()
		wantInLine(t, srv, 0)
	})
}

// Holds of goroutines of one value share requests: a turn of 128 holds takes one request.
func TestManyGoroutinesAskLittle(t *testing.T) {
	const goroutines, rounds = 64, 100
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		warm(t, mu)
		srv.ResetOps()
		count := 0
		// Not so many rounds for each goroutine: one that the system has stopped for a while would
		// go on alone at the end, and ask for each hold.
		var left atomic.Int64
		left.Store(goroutines * rounds)
		var wg sync.WaitGroup
		lock(t, mu) // until all are in the queue
		for range goroutines {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if err := mu.Lock(context.Background()); err != nil {
						t.Error(err)
						return
					}
					count++
					unlock(t, mu)
				}
			})
		}
		synctest.Wait()
		unlock(t, mu)
		wg.Wait()
		if count != goroutines*rounds {
			t.Errorf("counted %d", count)
		}
		// A turn is 128 holds and one request; a few more where the queue ran dry.
		if n := len(requests(srv)); n > 2*goroutines*rounds/128 {
			t.Errorf("%d requests for %d holds", n, goroutines*rounds)
		}
		wantInLine(t, srv, 0)
	})
}
