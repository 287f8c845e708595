package simulation_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"
)

// A feeder puts messages so that every consumer finally gets one. It detects consumers and
// producers that sleep: after the faults it puts no message while a message exists that a waiting
// consumer could receive. It ignores the capacity: consumers that have ended may have claimed as
// many messages as the capacity allows.
type feeder struct {
	st      *stream
	user    *queueUser
	backlog int           // number of messages at the start
	burst   int           // number of messages of each put
	until   time.Duration // how long it puts messages during the faults
}

func newFeeder(st *stream, r *rand.Rand) *feeder {
	calm := st.w.plan.calm()
	f := &feeder{st: st, user: &queueUser{st: st, m: st.w.managers[0]}}
	f.user.v = f.user.open()
	f.backlog, f.burst = []int{0, 0, 1, 30}[r.IntN(4)], 1+r.IntN(3)
	f.until = calm * time.Duration(r.IntN(3)) / 2
	return f
}

// run puts messages until ctx ends. Directly after the faults it pauses, because claims of lost
// sessions still exist.
func (f *feeder) run(ctx context.Context, c *simClient) {
	t := f.st.w.plan.timeout()
	f.put(ctx, c, f.backlog)
	for ctx.Err() == nil {
		stay(ctx, t/4)
		switch since := time.Since(f.st.w.begun); {
		case since < f.until:
			f.put(ctx, c, f.burst)
		case since > f.st.w.plan.calm()+4*t:
			if f.st.quietFor(t / 2) {
				f.wakeUp(ctx, c)
			}
		}
	}
}

// wakeUp checks for sleepers when nothing has happened for a while, and then puts or takes a
// message.
func (f *feeder) wakeUp(ctx context.Context, c *simClient) {
	st := f.st
	consumers, producers := st.waitingFor(st.w.plan.timeout() / 2)
	names, _ := st.w.srv.Children(st.path)
	messages := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "zksync-") {
			messages++
		}
	}
	if producers > 0 && messages < st.capacity {
		st.w.fail("%d producers wait, though %d of %d messages are in the queue", producers, messages, st.capacity)
	}
	if consumers > 0 || producers > 0 {
		called := st.h.clock.Add(1)
		limit, cancel := context.WithTimeout(ctx, st.w.plan.timeout())
		defer cancel()
		switch data, ok, err := f.user.v.TryTake(limit); {
		case err != nil && ctx.Err() == nil && !st.w.refused(err):
			st.w.fail("the feeder: %v", err)
		case ok && consumers > 0:
			st.w.fail("%d consumers wait, though message %s is there", consumers, data)
		case ok:
			st.receive(c, f.user.v, takeOrGiveUp, data, called) // makes room
			return
		}
	}
	f.put(ctx, c, f.burst)
}

func (f *feeder) put(ctx context.Context, c *simClient, n int) {
	if err := f.st.puts(ctx, c.number, f.user.v, n, action{}); err != nil && !f.st.w.refused(err) {
		f.st.w.fail("the feeder: %v", err)
	}
}

// stir records an event of the queue.
func (st *stream) stir() { st.stirred.Store(time.Now().UnixNano()) }

// quietFor reports whether there was no event for d.
func (st *stream) quietFor(d time.Duration) bool {
	return time.Now().UnixNano()-st.stirred.Load() >= int64(d)
}

// waiting records that a consumer or a producer waits until done is called.
func (st *stream) waiting(of map[*time.Time]bool) (done func()) {
	since := time.Now()
	st.mu.Lock()
	defer st.mu.Unlock()
	of[&since] = true
	return func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		delete(of, &since)
		st.stir()
	}
}

// waitingFor returns the numbers of consumers and producers that have waited for d.
func (st *stream) waitingFor(d time.Duration) (consumers, producers int) {
	count := func(of map[*time.Time]bool) (n int) {
		for since := range of {
			if time.Since(*since) >= d {
				n++
			}
		}
		return n
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return count(st.consumers), count(st.producers)
}
