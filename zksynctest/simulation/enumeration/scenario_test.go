package enumeration_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// A scenario is a short deterministic workload.
type scenario struct {
	name     string
	clients  int
	pairs    bool          // also try every pair of faults
	connects bool          // the scenario opens the Managers itself
	tick     time.Duration // of the servers, if not the usual one
	fresh    bool          // a session that was idle holds something, and sends no proof of life for long at first
	run      func(s *stage)
}

// hasQueue reports whether the clients of the scenario use a queue.
func (s *scenario) hasQueue() bool {
	return slices.ContainsFunc(queueKinds, func(k queueKind) bool { return strings.HasPrefix(s.name, k.name+"-") })
}

// hasFixedUnits reports whether the clients of the scenario use a semaphore whose size does not change.
func (s *scenario) hasFixedUnits() bool {
	return strings.HasPrefix(s.name, "semaphore-") && s.name != "semaphore-resize"
}

// endsWithoutPermissions reports whether the scenario ends if the servers refuse to show a znode. A
// Tree shows no part that it may not read, until a list names a change, and a consumer leaves a message
// that it may not read in the queue.
func (s *scenario) endsWithoutPermissions() bool {
	return !slices.Contains([]string{"tree", "tree-rearm", "queue-capacity"}, s.name)
}

// scenarios lists all scenarios in the order in which they are tried.
var scenarios = slices.Concat(sessionScenarios, lockScenarios, sharedScenarios, electionScenarios, ephemeralElectionScenarios, groupScenarios, barrierScenarios, watchScenarios, readScenarios, queueScenarios, settleScenarios, claimScenarios)

// together runs the parts of a scenario concurrently, and returns when all have ended.
func (s *stage) together(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// values are the values of a primitive: one for each Manager.
type values[T any] struct {
	make func(c *client, m *session.Manager) T
	mu   sync.Mutex
	made map[*session.Manager]T
}

func valuesOf[T any](make func(c *client, m *session.Manager) T) *values[T] {
	return &values[T]{make: make}
}

// of returns the value of a client.
func (v *values[T]) of(c *client) T {
	m := c.manager()
	v.mu.Lock()
	defer v.mu.Unlock()
	value, ok := v.made[m]
	if !ok {
		if v.made == nil {
			v.made = make(map[*session.Manager]T)
		}
		value = v.make(c, m)
		v.made[m] = value
	}
	return value
}

// probeLock adds a probe that acquires and releases.
func (s *stage) probeLock(what string, acquire func(ctx context.Context, c *client) error, release func(c *client) error) {
	s.probe(what, func(ctx context.Context, c *client) error {
		if err := acquire(ctx, c); err != nil {
			return err
		}
		return release(c)
	})
}

// impatiently makes a call that is cancelled after d. The cancellation is not a failure.
func (c *client) impatiently(what string, d time.Duration, f func(ctx context.Context) error, also ...allowance) error {
	return c.do(what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return f(ctx)
	}, append(also, or(context.DeadlineExceeded))...)
}

// errContended is the error of a try that acquired nothing.
var errContended = errors.New("somebody else has it")

// trying makes an acquisition of a try. Contention is not a failure.
func trying(try func(ctx context.Context) (context.Context, bool, error)) func(ctx context.Context) (context.Context, error) {
	return func(ctx context.Context) (context.Context, error) {
		held, ok, err := try(ctx)
		if err == nil && !ok {
			err = errContended
		}
		return held, err
	}
}

// operator makes a change directly at the server, without a frame, and repeats it while the
// ensemble has no leader.
func (s *stage) operator(change func() error) {
	for err := change(); err != nil; err = change() {
		if s.ctx.Err() != nil {
			return
		}
		if time.Since(s.begun) > budget {
			s.fail("the operator: %v", err)
			return
		}
		s.pause(while)
	}
}

// gone reports whether a fault has closed the client's Manager.
func (c *client) gone() bool { return c.open() == nil || c.stage.ctx.Err() != nil }
