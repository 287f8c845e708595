package enumeration_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// mutexStage is the common part of the scenarios of a Mutex.
type mutexStage struct {
	*stage
	judge  *judge
	values *values[*zksync.Mutex]
}

func withMutex(s *stage, path string, opts ...zksync.MutexOption) *mutexStage {
	ms := &mutexStage{stage: s, judge: s.judge(path, 1, true)}
	ms.values = valuesOf(func(_ *client, m *session.Manager) *zksync.Mutex {
		return zksync.NewMutex(m, path, append(opts, s.layout())...)
	})
	s.probeLock(path,
		func(ctx context.Context, c *client) error { return ms.values.of(c).Lock(ctx) },
		func(c *client) error { return ms.values.of(c).Unlock() })
	return ms
}

// lock locks for a client, stays for a while and unlocks.
func (ms *mutexStage) lock(c *client, stay time.Duration) {
	mu := ms.values.of(c)
	if h := c.hold(ms.judge, 1, "Lock", mu.LockContext); h != nil {
		h.keep(stay)
		h.release("Unlock", mu.Unlock)
	}
}

const (
	soon  = timeout / 30
	while = timeout / 10
	long  = timeout / 3 // the lease is renewed in the meantime
)

var lockScenarios = slices.Concat(mutexScenarios, idleScenarios(8))

// idleScenarios returns scenarios in which A locks after it was idle, so that the leader last heard
// of A long ago, and holds for longer than A's session lives. Followers report touches once in half
// a tick, one report may get lost each time, and sessions end once in a tick. Therefore each
// scenario begins at another part of the interval between two pings.
func idleScenarios(n int) (all []*scenario) {
	for i := range n {
		all = append(all, &scenario{name: fmt.Sprint("mutex-idle-", i), clients: 2, tick: timeout / 4, fresh: true, run: func(s *stage) {
			ms := withMutex(s, "/locks/m")
			a, b := s.clients[0], s.clients[1]
			a.sleep(timeout*2/3 + time.Duration(i)*timeout/3/time.Duration(n))
			session := s.net.Session(a.number)
			s.server.LoseTouches(session, true)
			a.sleep(timeout / 3)
			s.together(
				func() { ms.lock(a, 3*timeout/2) },
				func() { b.sleep(soon); ms.lock(b, soon) },
				func() { s.pause(timeout / 6); s.server.LoseTouches(session, false) },
			)
		}})
	}
	return all
}

// holdLong makes A hold until after the time at which another leader would end A's session, while B
// waits.
func holdLong(s *stage) {
	ms := withMutex(s, "/locks/m")
	a, b := s.clients[0], s.clients[1]
	s.together(
		func() { ms.lock(a, 5*timeout/2) },
		func() { b.sleep(soon); ms.lock(b, soon) },
	)
}

var mutexScenarios = []*scenario{
	// A holds, B waits and gets the lock without a request.
	{name: "mutex-handover", clients: 2, pairs: true, run: func(s *stage) {
		ms := withMutex(s, "/locks/m")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ms.lock(a, long) },
			func() { b.sleep(soon); ms.lock(b, while) },
		)
	}},
	// A holds until after the time at which another leader ends A's session.
	{name: "mutex-hold", clients: 2, run: holdLong},
	// Sessions end within a tick of their timeout, and T/20 is the shortest tick.
	{name: "mutex-hold-ticks", clients: 2, tick: timeout / 20, run: holdLong},
	// B waits while its connection breaks, so that its watches are armed again.
	{name: "mutex-rearm", clients: 2, pairs: true, run: func(s *stage) {
		ms := withMutex(s, "/locks/m")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ms.lock(a, long) },
			func() { b.sleep(soon); ms.lock(b, soon) },
			func() { s.pause(while); s.net.Disconnect(b.number) },
		)
	}},
	// B gives up while it waits, and locks again.
	{name: "mutex-abandon", clients: 2, run: func(s *stage) {
		ms := withMutex(s, "/locks/m")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ms.lock(a, while) },
			func() {
				b.sleep(soon)
				mu := ms.values.of(b)
				if b.impatiently("Lock", soon, mu.Lock) == nil {
					_ = b.end("Unlock", mu.Unlock, orLost)
				}
				ms.lock(b, soon)
			},
		)
	}},
	// A lingers when B comes, and rejoins behind B.
	{name: "mutex-linger", clients: 2, run: func(s *stage) {
		ms := withMutex(s, "/locks/m", zksync.WithLinger(long))
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() {
				ms.lock(a, soon)
				ms.lock(a, soon)
				a.sleep(while)
				ms.lock(a, soon)
			},
			func() { b.sleep(while); ms.lock(b, soon) },
		)
	}},
	// Two goroutines of A share a value, and B waits for its turn.
	{name: "mutex-shared", clients: 2, run: func(s *stage) {
		ms := withMutex(s, "/locks/m")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ms.lock(a, while) },
			func() { a.sleep(soon); ms.lock(a, soon) },
			func() { b.sleep(soon); ms.lock(b, soon) },
		)
	}},
	// A's first try fails, and A tries again.
	{name: "mutex-try", clients: 2, run: func(s *stage) {
		ms := withMutex(s, "/locks/m")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { ms.lock(a, while) },
			func() {
				for range 2 {
					b.sleep(soon)
					mu := ms.values.of(b)
					if h := b.hold(ms.judge, 1, "TryLock", trying(mu.TryLockContext), or(errContended)); h != nil {
						h.release("Unlock", mu.Unlock)
					}
					b.sleep(while)
				}
			},
		)
	}},
	// A's Do takes a second lock with the context of the first lock. B waits for the
	// first lock.
	{name: "mutex-do", clients: 2, run: func(s *stage) {
		outer, inner := withMutex(s, "/locks/outer"), withMutex(s, "/locks/inner")
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() {
				mu := inner.values.of(a)
				_ = a.do("Do", func(ctx context.Context) error {
					return outer.values.of(a).Do(ctx, func(ctx context.Context) error {
						if err := mu.Lock(ctx); err != nil {
							return err
						}
						a.sleep(while)
						return mu.Unlock()
					})
				}, orLost)
			},
			func() { b.sleep(soon); outer.lock(b, soon); inner.lock(b, soon) },
		)
	}},
}
