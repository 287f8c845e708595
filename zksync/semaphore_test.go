package zksync_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

const (
	sem       = "/sem"
	semLocks  = sem + "/locks"
	semLeases = sem + "/leases"
	semSize   = "/sem-size"
)

// wantUnits checks the number of znodes of units and of contenders.
func wantUnits(t testing.TB, srv *zksynctest.Server, units, line int) {
	t.Helper()
	synctest.Wait()
	held, waiting := inLine(srv, semLeases), inLine(srv, semLocks)
	if len(held) != units || len(waiting) != line {
		t.Errorf("leases %v, want %d, locks %v, want %d", held, units, waiting, line)
	}
}

// Requests of a Semaphore are served in the order of arrival, a large request is not overtaken, and TryAcquire returns
// false meanwhile.
func TestSemaphoreIsFirstComeFirstServed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		first := zksync.NewSemaphore(srv.Connect(t), sem, 5)
		must(t, first.Acquire(t.Context(), 2))
		must(t, first.Acquire(t.Context(), 2))
		wantUnits(t, srv, 4, 0)
		large, small := zksync.NewSemaphore(srv.Connect(t), sem, 5), zksync.NewSemaphore(srv.Connect(t), sem, 5)
		four := start(func() error { return large.Acquire(t.Context(), 4) })
		one := start(func() error { return small.Acquire(t.Context(), 1) })
		local := start(func() error { return large.Acquire(t.Context(), 1) })
		for _, s := range []*zksync.Semaphore{first, large, small} {
			if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
				t.Errorf("TryAcquire past others: %v, %v", ok, err)
			}
		}
		wantUnits(t, srv, 4, 2)
		must(t, first.Release(2))
		pending(t, "the large request", four)
		pending(t, "the small one behind it", one)
		must(t, first.Release(2))
		over(t, "the large request", four)
		over(t, "the small one behind it", one)
		pending(t, "the last one", local)
		wantUnits(t, srv, 5, 1)
		must(t, large.Release(4))
		over(t, "the last one", local)
		if ok, err := first.TryAcquire(t.Context(), 3); !ok || err != nil {
			t.Errorf("TryAcquire of all that is free: %v, %v", ok, err)
		}
		if ok, err := first.TryAcquire(t.Context(), 1); ok || err != nil {
			t.Errorf("TryAcquire of what is not free: %v, %v", ok, err)
		}
		must(t, first.Release(3))
		must(t, large.Release(1))
		must(t, small.Release(1))
		wantUnits(t, srv, 0, 0)
	})
}

// The znodes of a Semaphore have the names of Curator's InterProcessSemaphoreV2.
func TestSemaphoreLayout(t *testing.T) {
	lease := regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lease-[0-9]{10}$`)
	contender := regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-[0-9]{10}$`)
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := zksync.NewSemaphore(m, sem, 3)
		must(t, s.Acquire(t.Context(), 3))
		waiting := start(func() error { return s.Acquire(t.Context(), 1) })
		for _, name := range inLine(srv, semLeases) {
			if !lease.MatchString(name) {
				t.Errorf("a lease is called %q", name)
			}
		}
		for _, name := range inLine(srv, semLocks) {
			if !contender.MatchString(name) {
				t.Errorf("a contender is called %q", name)
			}
		}
		wantUnits(t, srv, 3, 1)
		must(t, s.Release(3))
		over(t, "Acquire", waiting)
		must(t, s.Release(1))
		// Curator's count, and nothing else does.
		for name, counts := range map[string]bool{"_c_5fd9e7c2-8fbc-4f8b-a1ff-3cbcb5a6c07b-lease-0000000001": true, "lease-0000000001": true, "other": false} {
			must(t, srv.Create(semLeases+"/"+name, nil))
			if ok, err := s.TryAcquire(t.Context(), 3); err != nil || ok == counts {
				t.Errorf("TryAcquire beside %s: %v, %v", name, ok, err)
			} else if ok {
				must(t, s.Release(3))
			}
			must(t, srv.Delete(semLeases+"/"+name))
		}
		if err := srv.Create(semLocks+"/_c_5fd9e7c2-8fbc-4f8b-a1ff-3cbcb5a6c07b-lock-0000000001", nil); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
			t.Errorf("TryAcquire behind Curator: %v, %v", ok, err)
		}
	})
}

// Semaphore reports ErrTooMany, ErrInvalidCount, ErrTooLarge and ErrNotHeld without a request.
func TestSemaphoreMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for n, s := range map[int]*zksync.Semaphore{0: zksync.NewSemaphore(m, sem, 0), -1: zksync.NewSemaphore(m, sem, -1)} {
			mustBe(t, s.Acquire(t.Context(), 1), zksync.ErrInvalidCount, "acquire", sem)
			_, err := s.TryAcquire(t.Context(), n)
			mustBe(t, err, zksync.ErrInvalidCount, "tryacquire", sem)
			mustBe(t, s.Release(1), zksync.ErrInvalidCount, "release", sem)
		}
		for _, bad := range []*zksync.Semaphore{
			zksync.NewSemaphore(m, "relative", 1), zksync.NewSemaphore(m, sem, 1, zksync.WithSizeFrom("x")), zksync.NewSemaphore(m, sem, 1, zksync.WithMaxWait(-1)),
		} {
			if err := bad.Acquire(t.Context(), 1); !errors.Is(err, session.ErrInvalidPath) && !errors.Is(err, zksync.ErrInvalidOption) {
				t.Errorf("a bad path or option: %v", err)
			}
		}
		s, huge := zksync.NewSemaphore(m, sem, 3), zksync.NewSemaphore(m, sem, 1<<40)
		misuse := func() {
			t.Helper()
			mustBe(t, s.Release(1), zksync.ErrNotHeld, "release", sem)
			mustBe(t, s.Release(3), zksync.ErrNotHeld, "release", sem)
			for _, k := range []int{0, -1} {
				mustBe(t, s.Acquire(t.Context(), k), zksync.ErrInvalidCount, "acquire", sem)
				mustBe(t, s.Release(k), zksync.ErrInvalidCount, "release", sem)
			}
			mustBe(t, s.Acquire(t.Context(), 4), zksync.ErrTooMany, "acquire", sem)
			mustBe(t, s.Acquire(t.Context(), 1<<40), zksync.ErrTooMany, "acquire", sem)
			mustBe(t, s.Release(1<<40), zksync.ErrNotHeld, "release", sem)
			mustBe(t, huge.Acquire(t.Context(), 1<<40), session.ErrTooLarge, "acquire", sem)
			ok, err := s.TryAcquire(t.Context(), 4)
			if mustBe(t, err, zksync.ErrTooMany, "tryacquire", sem); ok {
				t.Error("TryAcquire of more than there is: true")
			}
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(errEnough)
			mustBe(t, s.Acquire(ended, 1), errEnough, "acquire", sem)
		}
		misuse()
		if ops := requests(srv); len(ops) > 0 {
			t.Errorf("misuse costs requests: %s", names(ops))
		}
		must(t, s.Acquire(t.Context(), 2))
		misuse()
		wantUnits(t, srv, 2, 0)
		must(t, s.Release(2))
		mustBe(t, s.Release(2), zksync.ErrNotHeld, "release", sem)
	})
}

// Release(k) returns ErrLost for each acquisition of k units that may be lost, and no caller gets k units before.
func TestLostUnitsAreTold(t *testing.T) {
	for _, what := range waysToLose {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				s := zksync.NewSemaphore(m, sem, 9)
				older, err := s.AcquireContext(t.Context(), 2)
				must(t, err)
				newer, err := s.AcquireContext(t.Context(), 2)
				must(t, err)
				other, err := s.AcquireContext(t.Context(), 1)
				must(t, err)
				time.Sleep(time.Second)
				lose(t, srv, m, what, semLeases, 1, older, newer)
				if what != "session expired" {
					if other.Err() != nil {
						t.Errorf("the context of another hold ended with %v", context.Cause(other))
					}
					must(t, s.Release(1))
				}
				next := start(func() error { return s.Acquire(t.Context(), 2) })
				if ok, err := s.TryAcquire(t.Context(), 2); ok || err != nil {
					t.Errorf("TryAcquire: %v, %v", ok, err)
				}
				for range 2 {
					pending(t, "an acquisition before all are told", next)
					mustBe(t, s.Release(2), zksync.ErrLost, "release", sem)
				}
				over(t, "an acquisition after that", next)
				must(t, s.Release(2))
				wantUnits(t, srv, 0, 0)
			})
		})
	}
}

// The contexts of acquisitions of n units end with their cause when the last of them is released, the context of Do
// with its function, and tokens identify acquisitions.
func TestSemaphoreContexts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := zksync.NewSemaphore(m, sem, 9)
		ended := func(held context.Context, want error) {
			t.Helper()
			synctest.Wait()
			if err := context.Cause(held); !errors.Is(err, want) {
				t.Errorf("a context has ended with %v, want %v", err, want)
			}
		}
		parent, cancel := context.WithCancelCause(t.Context())
		a, err := s.AcquireContext(parent, 2)
		must(t, err)
		b, ok, err := s.TryAcquireContext(t.Context(), 2)
		if must(t, err); !ok {
			t.Fatal("TryAcquire: false")
		}
		one, hasOne := zksync.Token(a)
		two, hasTwo := zksync.Token(b)
		if !hasOne || !hasTwo || one == two {
			t.Errorf("tokens %d and %d", one, two)
		}
		must(t, s.Release(2))
		ended(a, nil)
		ended(b, nil)
		cancel(errEnough)
		ended(a, errEnough)
		ended(b, nil)
		wantUnits(t, srv, 2, 0)
		var done context.Context
		must(t, s.Do(t.Context(), 2, func(held context.Context) error {
			done = held
			return held.Err()
		}))
		ended(done, zksync.ErrReleased)
		ended(b, nil)
		must(t, s.Release(2))
		ended(b, zksync.ErrReleased)

		held, err := s.AcquireContext(t.Context(), 9)
		must(t, err)
		waiting := start(func() error { return s.Acquire(t.Context(), 1) })
		must(t, m.Close())
		ended(held, zksync.ErrClosed)
		mustBe(t, <-waiting, zksync.ErrClosed, "acquire", sem)
		err = s.Release(9)
		mustBe(t, err, zksync.ErrClosed, "release", sem)
		mustBe(t, err, zksync.ErrLost, "release", sem)
		wantUnits(t, srv, 0, 0)
	})
}

// WithMaxWait bounds the wait for units with ErrMaxWait, and does not bound the hold.
func TestSemaphoreMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := zksync.NewSemaphore(srv.Connect(t), sem, 2, zksync.WithMaxWait(time.Minute))
		held, err := s.AcquireContext(t.Context(), 2)
		must(t, err)
		other := start(func() error { return s.Acquire(t.Context(), 1) })
		before := time.Now()
		mustBe(t, s.Acquire(t.Context(), 1), zksync.ErrMaxWait, "acquire", sem)
		mustBe(t, <-other, zksync.ErrMaxWait, "acquire", sem)
		if waited := time.Since(before); waited != time.Minute || held.Err() != nil {
			t.Errorf("waited for %v, and the hold ended with %v", waited, held.Err())
		}
		wantUnits(t, srv, 2, 0)
		must(t, s.Release(2))
	})
}

// With WithSizeFrom the size is the number in the znode at the grant, and the default while the znode has none: 0
// lets no caller in, and a smaller size takes no unit away.
func TestSemaphoreSizeFromZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		m := srv.Connect(t, session.WithLogger(zap.New(core)))
		s := zksync.NewSemaphore(m, sem, 2, zksync.WithSizeFrom(semSize))
		must(t, s.Acquire(t.Context(), 1))
		next := start(func() error { return s.Acquire(t.Context(), 2) })
		pending(t, "an acquisition beyond the default", next)
		must(t, srv.Create(semSize, []byte(" 3\n")))
		over(t, "an acquisition, when there is more", next)
		mustBe(t, s.Acquire(t.Context(), 4), zksync.ErrTooMany, "acquire", sem)

		next = start(func() error { return s.Acquire(t.Context(), 3) })
		must(t, srv.Set(semSize, []byte("2")))
		mustBe(t, <-next, zksync.ErrTooMany, "acquire", sem)
		next = start(func() error { return s.Acquire(t.Context(), 1) })
		must(t, s.Release(1))
		pending(t, "an acquisition while too many are held", next)
		must(t, s.Release(2))
		over(t, "an acquisition, when enough have gone", next)

		must(t, srv.Set(semSize, []byte("0")))
		next = start(func() error { return s.Acquire(t.Context(), 1) })
		if ok, err := s.TryAcquire(t.Context(), 1); ok || err != nil {
			t.Errorf("TryAcquire of a semaphore that was stopped: %v, %v", ok, err)
		}
		must(t, s.Release(1))
		pending(t, "an acquisition of a semaphore that was stopped", next)
		if logs.Len() > 0 {
			t.Errorf("logged: %v", logs.All())
		}
		for _, nonsense := range []string{"many", "-1", ""} {
			must(t, srv.Set(semSize, []byte(nonsense)))
			over(t, "an acquisition, by the default", next)
			next = start(func() error { return s.Acquire(t.Context(), 2) })
			pending(t, "an acquisition beyond the default", next)
			said := logs.TakeAll()
			if len(said) != 1 || !strings.Contains(said[0].Message, "not a number") {
				t.Errorf("%q is logged as %v", nonsense, said)
			}
			must(t, s.Release(1))
			over(t, "an acquisition of all by the default", next)
			must(t, s.Release(2))
			logs.TakeAll()
			must(t, srv.Set(semSize, []byte("0")))
			next = start(func() error { return s.Acquire(t.Context(), 1) })
		}
		must(t, srv.Delete(semSize))
		over(t, "an acquisition, by the default again", next)
		must(t, s.Release(1))
		wantUnits(t, srv, 0, 0)
	})
}

// A size that changes at the moment of the grant counts.
func TestSemaphoreSizeChangesAtTheGrant(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		must(t, srv.Create(semSize, []byte("3")))
		s := zksync.NewSemaphore(m, sem, 2, zksync.WithSizeFrom(semSize))
		must(t, s.Acquire(t.Context(), 1))
		// The second multi creates the leases.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: multi, Nth: 2, At: zksynctest.BeforeCommit,
			Do: zksynctest.Call(func() { srv.Set(semSize, []byte("2")) })})
		next := start(func() error { return s.Acquire(t.Context(), 2) })
		pending(t, "an acquisition beyond what there is now", next)
		wantUnits(t, srv, 1, 1)
		must(t, s.Release(1))
		over(t, "Acquire", next)
		must(t, s.Release(2))
	})
}
