package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// each creates a value for every second client of a Manager, so that some clients share a value,
// and returns a function that returns the value of a client.
func each[T any](w *world, make func(manager int) T) func(c *simClient) T {
	values := map[[2]int]T{}
	for i := range w.plan.clients {
		key := [2]int{i % w.plan.managers, i / w.plan.managers % 2}
		if _, ok := values[key]; !ok {
			values[key] = make(key[0])
		}
	}
	return func(c *simClient) T { return values[[2]int{c.manager, c.number / w.plan.managers % 2}] }
}

var mutexes = &workload{name: "mutex", start: func(w *world) func(*simClient, action) error {
	const path = "/locks/m"
	h := w.object("mutex", units(1<<20))
	r := w.plan.rnd(forWorkload)
	var res resource
	values := each(w, func(manager int) *zksync.Mutex {
		var opts []zksync.MutexOption
		if r.IntN(3) == 0 {
			opts = append(opts, zksync.WithLinger(upTo(r, w.plan.timeout()/10)))
		}
		mu := zksync.NewMutex(w.managers[manager], path, opts...)
		w.probe("the Mutex", mu.Lock, mu.Unlock)
		return mu
	})
	w.dirs = append(w.dirs, path)
	return func(c *simClient, a action) error {
		mu := values(c)
		y := tenancy{h: h, value: mu, what: take{-1}, release: mu.Unlock, res: &res, fenced: true}
		switch {
		case a.kind < 15:
			y.acquire = mu.TryLockContext
		case a.kind < 25:
			return c.blind(a, h, func(ctx context.Context) error { return mu.Lock(ctx) }, mu.Unlock)
		case a.kind < 35:
			return c.do(a, y, mu.Do)
		default:
			y.acquire = patiently(mu.LockContext)
		}
		return c.hold(a, y)
	}
}}

// patiently converts an acquisition into the form of a try.
func patiently(acquire func(context.Context) (context.Context, error)) func(context.Context) (context.Context, bool, error) {
	return func(ctx context.Context) (context.Context, bool, error) {
		held, err := acquire(ctx)
		return held, err == nil, err
	}
}

// blind makes a hold without a held context.
func (c *simClient) blind(a action, h *history, acquire func(context.Context) error, release func() error) error {
	ctx, cancel := c.context(a)
	defer cancel()
	called := h.clock.Add(1)
	if err := acquire(ctx); err != nil {
		if ctx.Err() != nil && gaveUp(err) {
			return nil
		}
		return fmt.Errorf("acquire: %w", err)
	}
	returned := h.clock.Add(1)
	time.Sleep(a.stay)
	leaving := h.clock.Add(1)
	err := release()
	gone := h.clock.Add(1)
	if c.w.refused(err) {
		gone = math.MaxInt64 // the release continues in the background
	}
	if errors.Is(err, zksync.ErrLost) {
		leaving = returned // or at any later time
	}
	c.w.say("client %d held without a context, and has released: %v", c.number, err)
	if !h.doubtful(c.manager, called, returned, err) {
		h.note(c.number, take{-1}, called, returned)
		h.note(c.number, give{-1}, h.end(c.manager, returned, leaving), gone)
	}
	return withoutLoss(err)
}

// do makes a hold with a function that runs while the hold lasts.
func (c *simClient) do(a action, y tenancy, do func(context.Context, func(context.Context) error) error) error {
	began, over, done := make(chan context.Context), make(chan struct{}), make(chan error, 1)
	y.acquire = func(ctx context.Context) (context.Context, bool, error) {
		go func() {
			done <- do(ctx, func(held context.Context) error {
				began <- held
				<-over
				return nil
			})
		}()
		select {
		case held := <-began:
			return held, true, nil
		case err := <-done:
			if err == nil {
				err = errors.New("nil, and the function was not called")
			}
			// The session may end between the grant and the call.
			if errors.Is(err, zksync.ErrLost) {
				return nil, false, nil
			}
			return nil, false, err
		}
	}
	y.release = func() error { close(over); return <-done }
	return c.hold(a, y)
}

// probe registers a check that a value can be acquired after the run.
func (w *world) probe(name string, acquire func(context.Context) error, release func() error) {
	w.probes = append(w.probes, func(ctx context.Context) error {
		if err := acquire(ctx); err != nil {
			return fmt.Errorf("%s cannot be had though nobody has it: %w", name, err)
		}
		return release()
	})
}
