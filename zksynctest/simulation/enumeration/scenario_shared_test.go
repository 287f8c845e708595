package enumeration_test

import (
	"context"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// everybody is more units than there are readers.
const everybody = 1000

// rwStage is the common part of the scenarios of an RWMutex.
type rwStage struct {
	*stage
	judge  *judge
	values *values[*zksync.RWMutex]
}

func withRWMutex(s *stage) *rwStage {
	const path = "/locks/rw"
	rs := &rwStage{stage: s, judge: s.judge(path, everybody, true)}
	rs.values = valuesOf(func(_ *client, m *session.Manager) *zksync.RWMutex { return zksync.NewRWMutex(m, path, s.layout()) })
	s.probeLock("the write lock",
		func(ctx context.Context, c *client) error { return rs.values.of(c).Lock(ctx) },
		func(c *client) error { return rs.values.of(c).Unlock() })
	s.probeLock("the read lock",
		func(ctx context.Context, c *client) error { return rs.values.of(c).RLock(ctx) },
		func(c *client) error { return rs.values.of(c).RUnlock() })
	return rs
}

func (rs *rwStage) write(c *client, stay time.Duration) {
	rw := rs.values.of(c)
	if h := c.hold(rs.judge, everybody, "Lock", rw.LockContext); h != nil {
		h.keep(stay)
		h.release("Unlock", rw.Unlock)
	}
}

func (rs *rwStage) read(c *client, stay time.Duration) {
	rw := rs.values.of(c)
	if h := c.hold(rs.judge, 1, "RLock", rw.RLockContext); h != nil {
		h.keep(stay)
		h.release("RUnlock", rw.RUnlock)
	}
}

// downgrade writes, and continues to read.
func (rs *rwStage) downgrade(c *client, stay time.Duration) {
	rw := rs.values.of(c)
	h := c.hold(rs.judge, everybody, "Lock", rw.LockContext)
	if h == nil {
		return
	}
	c.sleep(stay)
	// From the call on, other readers may also hold.
	rs.judge.mu.Lock()
	h.units = 1
	rs.judge.mu.Unlock()
	r := c.holdOn(h, "Downgrade", rw.DowngradeContext, orLost)
	h.drop()
	if r != nil { // after an error nothing is held
		c.sleep(stay)
		r.release("RUnlock", rw.RUnlock)
	}
}

// semaphoreStage is the common part of the scenarios of a Semaphore.
type semaphoreStage struct {
	*stage
	judge  *judge
	values *values[*zksync.Semaphore]
}

const (
	semaphorePath  = "/locks/s"
	semaphoreUnits = 2
)

func withSemaphore(s *stage, opts ...zksync.SemaphoreOption) *semaphoreStage {
	const path, n = semaphorePath, semaphoreUnits
	ss := &semaphoreStage{stage: s, judge: s.judge(path, n, false)}
	ss.values = valuesOf(func(_ *client, m *session.Manager) *zksync.Semaphore {
		return zksync.NewSemaphore(m, path, n, append(opts, s.layout())...)
	})
	s.probeLock("all units",
		func(ctx context.Context, c *client) error { return ss.values.of(c).Acquire(ctx, n) },
		func(c *client) error { return ss.values.of(c).Release(n) })
	return ss
}

func (ss *semaphoreStage) acquire(c *client, n int, stay time.Duration) {
	sem := ss.values.of(c)
	acquire := func(ctx context.Context) (context.Context, error) { return sem.AcquireContext(ctx, n) }
	if h := c.hold(ss.judge, n, "Acquire", acquire); h != nil {
		h.keep(stay)
		h.release("Release", func() error { return sem.Release(n) })
	}
}

var sharedScenarios = []*scenario{
	// B's writer waits for A's reader, and A's next reader for B's writer.
	{name: "rwmutex-handover", clients: 2, pairs: true, run: func(s *stage) {
		rs := withRWMutex(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { rs.read(a, while); a.sleep(soon); rs.read(a, soon) },
			func() { b.sleep(soon); rs.write(b, while) },
		)
	}},
	// B's reader waits for A's writer, which continues as a reader beside B.
	{name: "rwmutex-downgrade", clients: 2, run: func(s *stage) {
		rs := withRWMutex(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { rs.downgrade(a, while) },
			func() { b.sleep(soon); rs.read(b, while) },
		)
	}},
	// B's writer waits for A's writer, which continues as a reader before B.
	{name: "rwmutex-downgrade-writer", clients: 2, run: func(s *stage) {
		rs := withRWMutex(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { rs.downgrade(a, while) },
			func() { b.sleep(soon); rs.write(b, soon) },
		)
	}},
	// B waits until A has released enough units.
	{name: "semaphore-handover", clients: 2, pairs: true, run: func(s *stage) {
		ss := withSemaphore(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ss.acquire(a, 1, while) },
			func() { b.sleep(soon); ss.acquire(b, 2, soon) },
		)
	}},
	// B waits until the semaphore is larger.
	{name: "semaphore-resize", clients: 2, run: func(s *stage) {
		const size = "/sizes/s"
		s.operator(func() error { return s.server.Create("/sizes", nil) })
		s.operator(func() error { return s.server.Create(size, []byte("1")) })
		ss := withSemaphore(s, zksync.WithSizeFrom(size))
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ss.acquire(a, 1, long) },
			func() { b.sleep(soon); ss.acquire(b, 1, soon) },
			func() { s.pause(while); s.operator(func() error { return s.server.Set(size, []byte("2")) }) },
		)
	}},
	// B gives up while it is first in line.
	{name: "semaphore-abandon", clients: 2, run: func(s *stage) {
		ss := withSemaphore(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ss.acquire(a, 2, while) },
			func() {
				b.sleep(soon)
				sem := ss.values.of(b)
				if b.impatiently("Acquire", soon, func(ctx context.Context) error { return sem.Acquire(ctx, 1) }) == nil {
					_ = b.end("Release", func() error { return sem.Release(1) }, orLost)
				}
				ss.acquire(b, 2, soon)
			},
		)
	}},
}
