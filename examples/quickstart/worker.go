package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A worker stands for a process: it has a session, a lock value and a network link of
// its own, and shares the resource with the other workers.
type worker struct {
	number int // from 0
	name   string

	m    *session.Manager
	lock *zksync.Mutex
	link *zksynctest.Link

	show   *timeline
	res    *resource
	faults *schedule
	hit    bool // by a fault that loses the lock: no worker loses it twice

	spans []span
}

// run takes one turn after the other until ctx ends.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		pause(ctx, length/20)
	}
	w.show.lane(w.number, resting)
	return nil
}

func (w *worker) turn(ctx context.Context) error {
	w.show.lane(w.number, waiting)
	asked := time.Now()
	held, err := w.lock.LockContext(ctx)
	if err != nil {
		return err
	}
	h := &hold{span: span{worker: w.name, from: time.Now()}, held: held, over: make(chan time.Time, 1)}
	h.token, _ = zksync.Token(held)
	h.unfollow = context.AfterFunc(held, func() { h.over <- time.Now() })
	w.show.lane(w.number, holding)
	w.show.say(w.name, "has the lock", "token %d, after waiting %s", h.token, short(h.from.Sub(asked)))
	value, err := w.do(ctx, h)
	w.end(h)
	w.spans = append(w.spans, h.span)
	if err == nil {
		w.show.say(w.name, "lets go", "wrote %d, held it for %s", value, short(h.until.Sub(h.from)))
	} else if h.held.Err() == nil {
		w.show.say(w.name, "is refused", "%v", err)
	}
	err = w.lock.Unlock()
	if !errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrClosed) {
		return err
	}
	// Write late, as a process does that slept through the loss. The resource must
	// refuse the write.
	if w.res.overtaken(ctx, h.token) {
		outcome := "ACCEPTED, which must not be"
		if err := w.res.write(w.name, h.token, value, true); err != nil {
			outcome = "REFUSED, " + err.Error()
		}
		w.show.say(w.name, "writes late", "as if it had slept: %s", outcome)
	}
	return nil
}

// do is the work that needs the lock: read a number, think about it, and write the
// next number. It returns the number that it has written or would have written.
func (w *worker) do(ctx context.Context, h *hold) (value int, err error) {
	if value, err = w.res.read(w.name, h.token); err != nil {
		return value, err
	}
	value++
	if strike := w.faults.next(w); strike != nil {
		pause(h.held, length/50) // so that one sees it hold
		strike(w, ctx, h)
	}
	pause(h.held, length/30)
	// Write only while the hold lives. The token protects the resource from a worker
	// that is wrong about its hold.
	if h.held.Err() != nil {
		return value, context.Cause(h.held)
	}
	return value, w.res.write(w.name, h.token, value, false)
}

// A hold is one turn of a worker with the lock, as the worker sees it.
type hold struct {
	span
	held     context.Context // as LockContext returned it
	over     chan time.Time
	unfollow func() bool
}

// end closes the interval: at the end of the held context, or now if it lives. Call
// it before Unlock, for from then on another worker may hold the lock.
func (w *worker) end(h *hold) {
	if !h.until.IsZero() {
		return
	}
	w.show.lane(w.number, resting)
	if h.unfollow() {
		h.until = time.Now()
		return
	}
	h.until = <-h.over
	if h.lost = errors.Is(context.Cause(h.held), zksync.ErrLost); h.lost {
		w.show.say(w.name, "LOST the lock", "and knew it %s after the fault", short(h.until.Sub(h.struck)))
	}
}

// pause waits for d, give or take 40 percent.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d*3/5 + rand.N(d*4/5)):
	case <-ctx.Done():
	}
}
