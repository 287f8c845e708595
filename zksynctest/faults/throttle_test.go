package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// cleanUpTime bounds clean-up after the server has stopped refusing requests.
const cleanUpTime = 10 * time.Second

// throttling makes a server handle one request at a time, and refuse requests that have waited for
// more than 10 ms.
var throttling = zksynctest.RealJVM(
	"-Dzookeeper.request_throttle_max_requests=1",
	"-Dzookeeper.request_throttle_stall_time=5",
	"-Dzookeeper.throttled_op_wait_time=10",
)

// Clean-up completes, and no call is left behind, although the server refuses requests of clean-up
// for a while.
func TestThrottled(t *testing.T) {
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 1, throttling)
	t.Run("Unlock", func(t *testing.T) { unlockThrottled(t, e) })
	t.Run("cancelled Locks", func(t *testing.T) { cancelThrottled(t, e) })
	t.Run("DoubleBarrier", func(t *testing.T) { enterThrottled(t, e) })
}

// tally counts errors, and keeps the first one.
type tally struct {
	mu    sync.Mutex
	n     int
	first error
}

func (c *tally) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.first == nil {
		c.first = err
	}
}

// report fails the test if there was an error.
func (c *tally) report(t *testing.T, what string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n > 0 {
		t.Errorf("%d times %s, the first time with: %v", c.n, what, c.first)
	}
}

// unlockThrottled releases locks while the server refuses requests: afterwards no contender is
// left.
func unlockThrottled(t *testing.T, e *zksynctest.Ensemble) {
	const locks = 20
	m, path := connectLong(t, e), servers.Path(t)
	var held []*zksync.Mutex
	for i := range locks {
		mu := zksync.NewMutex(m, fmt.Sprintf("%s/%d", path, i))
		if err := mu.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		held = append(held, mu)
	}
	stop := overload(t, e)
	var failed tally
	var wg sync.WaitGroup
	for _, mu := range held {
		wg.Go(func() {
			if err := mu.Unlock(); err != nil {
				failed.add(err)
			}
		})
	}
	overloaded(&wg)
	stop()
	wg.Wait()
	failed.report(t, "Unlock failed while the server refused requests")
	left := 0
	eventually(cleanUpTime, func() bool {
		left = 0
		for i := range held {
			left += contenders(t, m, fmt.Sprintf("%s/%d", path, i))
		}
		return left == 0
	})
	if left > 0 {
		t.Errorf("%d of %d locks that were unlocked are held %v after the server took requests again", left, locks, cleanUpTime)
	}
}

// cancelThrottled cancels callers that wait for a lock while the server refuses
// requests: afterwards only the holder's contender is left.
func cancelThrottled(t *testing.T, e *zksynctest.Ensemble) {
	const sessions, callers = 4, 30 // callers of each session
	m, path := connectLong(t, e), servers.Path(t)
	holder := zksync.NewMutex(m, path)
	if err := holder.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	early, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waiting atomic.Int64
	var failed tally
	var wg sync.WaitGroup
	lock := func(m *session.Manager, ctx context.Context) {
		waiting.Add(1)
		wg.Go(func() {
			defer waiting.Add(-1)
			if err := zksync.NewMutex(m, path).Lock(ctx); ctx.Err() == nil {
				failed.add(err)
			}
		})
	}
	var managers []*session.Manager
	for i := range sessions {
		managers = append(managers, connectLong(t, e))
		for j := range callers {
			lock(managers[i], early)
			inLine := 1 + i*callers + j + 1
			if !eventually(patience, func() bool { return contenders(t, m, path) == inLine }) {
				t.Fatalf("%d contenders in line, want %d", contenders(t, m, path), inLine)
			}
		}
	}
	stop := overload(t, e)
	cancel() // the callers that were in line before the overload
	for _, m := range managers {
		for range callers {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(500))*time.Millisecond)
			defer cancel()
			lock(m, ctx)
		}
	}
	cancelled := time.Now()
	returned := eventually(cleanUpTime, func() bool { return waiting.Load() == 0 })
	t.Logf("all calls returned %v after their ctx ended", time.Since(cancelled).Round(time.Millisecond))
	stop()
	failed.report(t, "Lock of a lock that is held returned before its ctx ended")
	if !returned {
		t.Errorf("%d calls of Lock have not returned %v after their ctx ended", waiting.Load(), cleanUpTime)
	}
	left := 0
	eventually(cleanUpTime, func() bool {
		left = contenders(t, m, path) - 1
		return left == 0
	})
	if left > 0 {
		t.Errorf("of %d cancelled calls of Lock, %d contenders are left %v after the server took requests again, and %d callers wait",
			2*sessions*callers, left, cleanUpTime, waiting.Load())
	}
	wg.Wait()
	if err := holder.Unlock(); err != nil {
		t.Error(err)
	}
}

// enterThrottled makes participants enter and leave a double barrier many times while the server
// refuses requests for a second: all calls return without an error.
func enterThrottled(t *testing.T, e *zksynctest.Ensemble) {
	const sessions, each, rounds = 4, 2, 100
	const all = sessions * each
	path := servers.Path(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var managers []*session.Manager
	for range sessions {
		// A participant that missed an event reads again once in T.
		managers = append(managers, e.Connect(t, session.WithTimeout(cleanUpTime/3)))
	}
	var waiting, passed atomic.Int64
	var failed tally
	var wg sync.WaitGroup
	for i := range all {
		waiting.Add(1)
		wg.Go(func() {
			defer waiting.Add(-1)
			b := zksync.NewDoubleBarrier(managers[i%sessions], path, all)
			for range rounds {
				err := b.Enter(ctx)
				if err == nil {
					err = b.Leave(ctx)
				}
				if err != nil {
					if ctx.Err() == nil {
						failed.add(err)
					}
					return
				}
				passed.Add(1)
			}
		})
	}
	eventually(cleanUpTime, func() bool { return passed.Load() >= 2*all })
	stop := overload(t, e)
	if waiting.Load() == 0 {
		t.Error("the participants had finished before the server refused the first request")
	}
	overloaded(&wg)
	stop()
	// A busy machine may need long for all rounds. A participant that hangs holds up all others.
	for before := passed.Load(); waiting.Load() > 0; before = passed.Load() {
		if !eventually(cleanUpTime, func() bool { return waiting.Load() == 0 || passed.Load() > before }) {
			t.Errorf("no participant has passed for %v after the server took requests again; %d of %d still wait", cleanUpTime, waiting.Load(), all)
			break
		}
	}
	cancel()
	wg.Wait()
	failed.report(t, "a participant left the barrier with an error")
	if n := passed.Load(); n < all*rounds && !t.Failed() {
		t.Errorf("%d passes, want %d", n, all*rounds)
	}
}

// connectLong opens a session that lives longer than the tests: the overload must not end a
// session, and the end of a session must not replace clean-up.
func connectLong(t *testing.T, e *zksynctest.Ensemble) *session.Manager {
	t.Helper()
	return e.Connect(t, session.WithTimeout(longTimeout))
}

// overloaded waits for wg, at most for a second, which is the length of the overload.
func overloaded(wg *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// contenders returns the number of znodes in line for a lock. It retries a refused request.
func contenders(t *testing.T, m *session.Manager, path string) int {
	t.Helper()
	var names []string
	var err error
	if !eventually(patience, func() bool {
		err = m.Do(t.Context(), func(ctx context.Context, s *session.Session) (err error) {
			names, _, err = s.Children(ctx, path)
			return err
		})
		return err == nil || errors.Is(err, zk.ErrNoNode)
	}) {
		t.Fatal(err)
	}
	return len(names)
}
