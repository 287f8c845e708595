package interop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Semaphore counts together with Curator's InterProcessSemaphoreV2.
func TestSemaphore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		m := srv.Connect(t)
		s := zksync.NewSemaphore(m, path, 3)
		theirs := java.peer(t).connect(t, srv.Address(), alive).make(t, "curator-semaphore", path, "3")

		held, err := s.AcquireContext(t.Context(), 2)
		must(t, err)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("our units: %v", context.Cause(held))
			}
		})
		theirs.want(t, "false", "try", "2", "300")
		theirs.want(t, "true", "try", "1", "10000")
		if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
			t.Errorf("TryAcquire of what is not there: %v, %v", ok, err)
		}
		must(t, s.Release(2))
		theirs.call(t, "acquire", "1")
		awaitChildren(t, live(t, m), path+"/leases", 2)
		many := start(func() error { return s.Acquire(t.Context(), 3) })
		awaitChildren(t, live(t, m), path+"/locks", 1)
		theirs.call(t, "release")
		waiting(t, "Acquire of all", many)
		theirs.call(t, "release")
		ended(t, "Acquire of all", many)
		theirs.want(t, "false", "try", "1", "100")
		must(t, s.Release(3))
	})
}

// Contenders of both languages never hold more units than the semaphore has.
func TestSemaphoreContention(t *testing.T) {
	t.Parallel()
	const size, n = 2, 50
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		var inside spans
		var answers []<-chan answer
		for range 3 {
			h := java.peer(t).connect(t, srv.Address(), alive).make(t, "curator-semaphore", path, strconv.Itoa(size))
			answers = append(answers, h.start("contend", strconv.Itoa(n)))
		}
		var wg sync.WaitGroup
		for range 3 {
			s := zksync.NewSemaphore(srv.Connect(t), path, size)
			wg.Go(func() {
				for range n {
					err := s.Do(t.Context(), 1, func(context.Context) error {
						from := time.Now().UnixMilli()
						<-time.After(2 * time.Millisecond)
						inside.add(from, time.Now().UnixMilli())
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			for _, span := range strings.Split(answered(t, "contend", a), ",") {
				var from, to int64
				if _, err := fmt.Sscanf(span, "%d-%d", &from, &to); err != nil {
					t.Fatal(err)
				}
				inside.add(from, to)
			}
		}
		if most := inside.most(); most > size || len(inside.all) != 6*n {
			t.Errorf("%d were inside at once, of %d in all", most, len(inside.all))
		}
	})
}

// A Curator whose session ends while it has the lock of the semaphore creates its lease under its next session, without the
// lock. If it does so after a Semaphore of ours has counted the leases, the Semaphore waits for the lease all the same.
func TestSemaphoreBesideALateCurator(t *testing.T) {
	t.Parallel()
	srv := zksynctest.Start(t, zksynctest.WithTick(500*time.Millisecond))
	theirs := java.peer(t).connect(t, srv.Addr(), alive).make(t, "curator-semaphore", "/sem", "1")
	s := zksync.NewSemaphore(srv.Connect(t), "/sem", 1)
	must(t, s.Acquire(t.Context(), 1))
	must(t, s.Release(1))
	theirs.want(t, "true", "try", "1", "10000")
	theirs.call(t, "release")

	inLeases := func(op zkserver.Op) bool {
		return op.Code != zkserver.OpMulti && strings.HasPrefix(op.Path, "/sem/leases/")
	}
	var session atomic.Int64 // Curator's
	lost, counted, created := make(chan struct{}), make(chan struct{}), make(chan struct{})
	lease := zksynctest.Fault{At: zksynctest.BeforeCommit, Match: func(op zkserver.Op) bool {
		if inLeases(op) {
			session.CompareAndSwap(0, op.Session)
		}
		return inLeases(op)
	}}
	lease.Do = zksynctest.Call(func() {
		srv.ExpireSession(session.Load())
		close(lost)
	})
	srv.Inject(lease)
	lease.Nth, lease.Do = 2, zksynctest.Call(func() { <-counted })
	srv.Inject(lease)
	srv.Inject(zksynctest.Fault{At: zksynctest.AfterCommit, Match: func(op zkserver.Op) bool { return inLeases(op) && op.Err == 0 },
		Do: zksynctest.Call(func() { close(created) })})
	srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/sem/leases/*", At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
		close(counted)
		<-created
	})})
	late := theirs.start("try", "1", "30000")
	<-lost
	acquired := start(func() error { return s.Acquire(t.Context(), 1) })
	if got := answered(t, "Curator's acquire", late); got != "true" {
		t.Fatalf("Curator's acquire returned %s", got)
	}
	waiting(t, "Acquire", acquired)
	theirs.call(t, "release")
	ended(t, "Acquire", acquired)
	must(t, s.Release(1))
}

// With LayoutKazoo a Semaphore counts together with kazoo's Semaphore.
func TestSemaphoreWithKazoo(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"we make it", "kazoo makes it"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				m := srv.Connect(t)
				s := zksync.NewSemaphore(m, path, 2, zksync.WithLayout(zksync.LayoutKazoo))
				kazoo := python.peer(t).connect(t, srv.Address(), alive)
				a, b := kazoo.make(t, "kazoo-semaphore", path, "2", "a"), kazoo.make(t, "kazoo-semaphore", path, "2", "b")
				if first == "kazoo makes it" {
					a.want(t, "true", "try", "0")
					a.call(t, "release")
				}
				must(t, s.Acquire(t.Context(), 1))
				a.want(t, "true", "try", "0")
				b.want(t, "false", "try", "0")
				if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
					t.Errorf("TryAcquire of a third: %v, %v", ok, err)
				}
				waits := b.start("acquire")
				awaitChildren(t, live(t, m), path+"-__lock__", 1)
				must(t, s.Release(1))
				answered(t, "acquire", waits)
				both := start(func() error { return s.Acquire(t.Context(), 2) })
				awaitChildren(t, live(t, m), path+"-__lock__", 1)
				a.call(t, "release")
				waiting(t, "Acquire", both)
				b.call(t, "release")
				ended(t, "Acquire", both)
				must(t, s.Release(2))
				wrong := kazoo.make(t, "kazoo-semaphore", path, "3", "c")
				if got := <-wrong.start("try", "0"); got.err == nil || !strings.Contains(got.err.Error(), "ValueError") {
					t.Errorf("one with another size: %q, %v", got.text, got.err)
				}
			})
		})
	}
}

// spans records times of holding, in milliseconds. Both ends are rounded down, so two spans do not
// overlap if the later span begins in the millisecond in which the earlier span ends.
type spans struct {
	mu  sync.Mutex
	all [][2]int64
}

func (s *spans) add(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, [2]int64{from, to})
}

// most returns the maximum number of simultaneous spans.
func (s *spans) most() int {
	type change struct{ at, by int64 }
	var changes []change
	for _, span := range s.all {
		changes = append(changes, change{span[0], 1}, change{span[1], -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, most := int64(0), int64(0)
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return int(most)
}
