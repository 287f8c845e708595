package zksync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// lateLease is the lease of a client that has created it without the lock.
const lateLease = semLeases + "/_c_5fd9e7c2-8fbc-4f8b-a1ff-3cbcb5a6c07b-lease-0000000000"

// A Curator whose session has ended creates its lease under the next session, without the lock of the semaphore. If the lease
// comes between the count and the exchange of another client, the limit holds all the same: Acquire waits until the lease is
// gone, and TryAcquire returns false without a znode. A child that is no lease does not count.
func TestSemaphoreBesideALateLease(t *testing.T) {
	for name, lost := range map[string]bool{"with the answer": false, "after a lost answer": true, "in place of another child": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				s := zksync.NewSemaphore(srv.Connect(t), sem, 1)
				must(t, s.Acquire(t.Context(), 1))
				must(t, s.Release(1))
				must(t, srv.Create(semLeases+"/other", nil))
				others := 1 // children that are no leases
				late := func() {
					srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
						must(t, srv.Create(lateLease, nil))
						if others > 0 && strings.HasPrefix(name, "in place") {
							must(t, srv.Delete(semLeases+"/other"))
							others--
						}
					})})
					if lost {
						srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
					}
				}
				late()
				if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
					t.Errorf("TryAcquire: %v, %v", ok, err)
				}
				wantUnits(t, srv, 1+others, 0)
				must(t, srv.Delete(lateLease))

				late()
				if !lost { // the look for a lost answer lists the directory, too
					// An internal error at the second count says nothing about the leases.
					srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: semLeases, Nth: 2, Do: zksynctest.Error(-1)})
				}
				acquired := start(func() error { return s.Acquire(t.Context(), 1) })
				<-time.After(time.Second) // of the bubble: it has taken the lock again
				pending(t, "Acquire beside the lease", acquired)
				wantUnits(t, srv, 1+others, 1)
				must(t, srv.Delete(lateLease))
				over(t, "Acquire", acquired)
				must(t, s.Release(1))
				wantUnits(t, srv, others, 0)
			})
		})
	}
	t.Run("without the permission to write", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			for _, dir := range []string{sem, semLeases} {
				_, err := live(t, m).Create(t.Context(), dir, nil, 0, zk.WorldACL(zk.PermAll&^zk.PermWrite)...)
				must(t, err)
			}
			s := zksync.NewSemaphore(m, sem, 1)
			srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", Nth: 2, At: zksynctest.BeforeCommit, // the first one is refused
				Do: zksynctest.Call(func() { must(t, srv.Create(lateLease, nil)) })})
			if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
				t.Errorf("TryAcquire: %v, %v", ok, err)
			}
			wantUnits(t, srv, 1, 0)
		})
	})
}

// An Acquire that gives its units back returns when its ctx ends, also if no server answers.
func TestAcquireBesideALateLeaseEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := zksync.NewSemaphore(srv.Connect(t), sem, 1)
		must(t, s.Acquire(t.Context(), 1))
		must(t, s.Release(1))
		srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeCommit,
			Do: zksynctest.Call(func() { must(t, srv.Create(lateLease, nil)) })})
		srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, Path: semLeases + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Delay(time.Minute)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		mustBe(t, s.Acquire(ctx, 1), context.DeadlineExceeded, "acquire", sem)
		if took := time.Since(began); took != time.Second {
			t.Errorf("Acquire took %v, want the second of its ctx", took)
		}
	})
}
