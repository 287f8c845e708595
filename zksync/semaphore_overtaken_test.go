package zksync_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A Curator client that is next in line, and creates its lease before it counts, takes no unit from the Acquire before it, also
// if the Acquire has to count again: beside another child, after a lost answer, or in a directory with data.
func TestAcquireBeforeACurator(t *testing.T) {
	for _, name := range []string{"other child", "lost answer", "data"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				must(t, srv.Create(sem, nil))
				must(t, srv.Create(semLeases, map[string][]byte{"data": []byte("data")}[name]))
				s := zksync.NewSemaphore(srv.Connect(t), sem, 1)
				must(t, s.Acquire(t.Context(), 1))
				must(t, s.Release(1))
				if name == "other child" {
					must(t, srv.Create(semLeases+"/other", nil))
				}
				// The Curator client has the lock as soon as the Acquire has exchanged its contender.
				curator := live(t, srv.Connect(t))
				var lease string
				created := start(func() (err error) {
					for !slices.ContainsFunc(inLine(srv, semLeases), func(n string) bool { return strings.Contains(n, "lease-") }) {
						<-time.After(time.Millisecond)
					}
					lease, err = curator.CreateProtected(t.Context(), semLeases+"/lease-", []byte("curator"), zk.FlagEphemeralSequential)
					return err
				})
				answer := zksynctest.Delay(time.Second)
				if name == "lost answer" {
					answer = zksynctest.Disconnect
				}
				srv.Inject(zksynctest.Fault{Op: multi, Path: semLeases + "/*", At: zksynctest.BeforeReply, Do: answer})
				srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: semLeases, Nth: 2, Do: zksynctest.Delay(time.Second)})
				if ok, err := s.TryAcquire(t.Context(), 1); !ok || err != nil {
					t.Errorf("TryAcquire: %v, %v, want the unit", ok, err)
				}
				must(t, <-created)
				must(t, s.Release(1))
				if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
					t.Errorf("TryAcquire beside the lease %s: %v, %v", lease, ok, err)
				}
			})
		})
	}
}

// TryAcquire keeps its unit when the size is raised and another client acquires while it counts again.
func TestTryAcquireWhileTheSizeIsRaised(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		must(t, srv.Create("/size", []byte("1")))
		s := zksync.NewSemaphore(srv.Connect(t), sem, 1, zksync.WithSizeFrom("/size"))
		other := zksync.NewSemaphore(srv.Connect(t), sem, 1, zksync.WithSizeFrom("/size"))
		must(t, s.Acquire(t.Context(), 1))
		must(t, s.Release(1))
		must(t, srv.Create(semLeases+"/other", nil)) // a child that is no lease
		srv.Inject(zksynctest.Fault{Op: zkserver.OpGetChildren2, Path: semLeases, Nth: 2, Do: zksynctest.Delay(time.Second)})
		tried := start(func() error {
			ok, err := s.TryAcquire(t.Context(), 1)
			if !ok {
				t.Errorf("TryAcquire: %v, %v, want the unit", ok, err)
			}
			return err
		})
		<-time.After(time.Second / 2) // the second count is under way
		must(t, srv.Set("/size", []byte("5")))
		must(t, other.Acquire(t.Context(), 2))
		must(t, <-tried)
	})
}
