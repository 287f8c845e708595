package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// An acquisition fails if the znode of WithSizeFrom may not be read: the default could
// be more than the operators allow.
func TestSemaphoreSizeThatMayNotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		_, err := live(t, m).Create(t.Context(), semSize, []byte("1"), zk.FlagPersistent, zk.DigestACL(zk.PermAll, "other", "secret")...)
		must(t, err)
		s := zksync.NewSemaphore(m, sem, 2, zksync.WithSizeFrom(semSize))
		mustBe(t, s.Acquire(t.Context(), 1), zk.ErrNoAuth, "acquire", sem)
		wantUnits(t, srv, 0, 0)
	})
}

// An acquisition of more units than fit into one transaction fails at once, also while others hold units, and keeps no
// other caller waiting. The largest acquisition that fits succeeds.
func TestAcquisitionThatNeverFits(t *testing.T) {
	for _, opts := range [][]zksync.SemaphoreOption{nil, {zksync.WithLayout(zksync.LayoutKazoo)}, {zksync.WithSizeFrom(semSize)}} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t, session.WithMaxRequest(4<<10))
			must(t, srv.Create(semSize, []byte("1000")))
			a := zksync.NewSemaphore(m, sem, 1000, opts...)
			n := 1
			for ; ; n++ {
				ok, err := a.TryAcquire(t.Context(), n)
				if errors.Is(err, session.ErrTooLarge) {
					break
				}
				if must(t, err); !ok {
					t.Fatalf("TryAcquire of %d units of a free semaphore: false", n)
				}
				must(t, a.Release(n))
			}
			if n < 10 || n > 40 {
				t.Errorf("%d units do not fit into %d bytes", n, m.MaxRequest())
			}
			must(t, srv.Set(semSize, fmt.Append(nil, n)))
			b, c := zksync.NewSemaphore(m, sem, n, opts...), zksync.NewSemaphore(m, sem, n, opts...)
			must(t, b.Acquire(t.Context(), 1))
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			mustBe(t, c.Acquire(ctx, n), session.ErrTooLarge, "acquire", sem)
			if took := time.Since(began); took > time.Second {
				t.Errorf("Acquire of units that never fit failed after %v, want at once", took)
			}
			must(t, b.Release(1))
		})
	}
}

// A lock that can be locked can be handed to another goroutine of the value, and downgraded, also if its ID is as long as
// a request allows. An ID that is longer fails at the first Lock or TryLock with ErrTooLarge. Breaks without
// LocalQueue.checkSize.
func TestLockWithTheLongestID(t *testing.T) {
	for _, layout := range []zksync.Layout{zksync.LayoutCurator, zksync.LayoutKazoo} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t, session.WithMaxRequest(1024))
			value := func(n int) *zksync.RWMutex {
				return zksync.NewRWMutex(m, path, zksync.WithID(strings.Repeat("x", n)), zksync.WithLayout(layout))
			}
			n := 1024
			rw := value(n)
			for ; !lockable(t, rw); rw = value(n) {
				ok, err := rw.TryLock(t.Context())
				if mustBe(t, err, session.ErrTooLarge, "trylock", path); ok {
					t.Fatal("TryLock has acquired what Lock could not")
				}
				n--
			}
			if n < 400 {
				t.Errorf("the longest ID has %d bytes", n)
			}
			next := start(func() error { return rw.Lock(t.Context()) })
			time.Sleep(time.Second) // the turn of the process is over
			must(t, rw.Unlock())
			over(t, "the next goroutine", next)
			must(t, rw.Downgrade(t.Context()))
			must(t, rw.RUnlock())
		})
	}
}

// lockable locks a lock, unless its transactions do not fit into a request.
func lockable(t *testing.T, rw *zksync.RWMutex) bool {
	t.Helper()
	err := rw.Lock(t.Context())
	if err != nil {
		mustBe(t, err, session.ErrTooLarge, "lock", path)
	}
	return err == nil
}

// A directory whose sequence numbers are used up keeps its data when it is created again: the size of a semaphore that
// operators have set there, and the data of another program.
func TestSpentCounterKeepsTheDataOfTheDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const locks = sem + "/locks"
		must(t, srv.Create("/locks", nil))
		must(t, srv.Create(sem, nil))
		must(t, srv.Create(locks, []byte("2")))
		must(t, srv.Create(path, []byte("theirs")))
		m := srv.Connect(t)
		s, mu := zksync.NewSemaphore(m, sem, 5, zksync.WithSizeFrom(locks)), zksync.NewMutex(m, path)
		for range 2 {
			must(t, s.Acquire(t.Context(), 2))
			must(t, s.Release(2))
			mustBe(t, s.Acquire(t.Context(), 3), zksync.ErrTooMany, "acquire", sem)
			lock(t, mu)
			unlock(t, mu)
			must(t, srv.SetNextSequence(locks, 2147483647))
			must(t, srv.SetNextSequence(path, 2147483647))
		}
		for dir, want := range map[string]string{locks: "2", path: "theirs"} {
			if data, _ := srv.Get(dir); string(data) != want {
				t.Errorf("the data of %s is %q, want %q", dir, data, want)
			}
		}
	})
}
