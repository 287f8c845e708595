package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// connectTimeout is how long the servers may take to answer at the start.
const connectTimeout = 15 * time.Second

// A worker stands for a process: it has a session, a lock value and a network
// link of its own, and shares nothing with the others but the resource.
type worker struct {
	number int // from 0
	name   string
	length time.Duration // of the whole run, which sets the pace

	m    *session.Manager
	lock *zksync.Mutex
	link *link

	show *timeline
	res  *resource
	sab  *saboteur

	spans []span
}

// hire connects all workers.
func hire(ctx context.Context, cfg config, st *stage, show *timeline, res *resource, sab *saboteur) ([]*worker, error) {
	workers := make([]*worker, cfg.workers)
	g, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no session within %v", connectTimeout))
	defer cancel()
	for i := range workers {
		g.Go(func() error {
			w := &worker{number: i, name: fmt.Sprintf("w%d", i+1), length: cfg.length, show: show, res: res, sab: sab}
			w.link = newLink(st.dial)
			m, err := session.Connect(ctx, st.servers, session.WithTimeout(cfg.timeout), session.WithDialer(w.link.dial))
			if err != nil {
				return err
			}
			w.m, w.lock = m, st.lock(m, w.name)
			workers[i] = w
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		dismiss(workers)
		return nil, err
	}
	return workers, nil
}

// dismiss closes the sessions of all workers, in parallel since each may have
// to wait for a server.
func dismiss(workers []*worker) {
	var wg sync.WaitGroup
	for _, w := range workers {
		if w != nil {
			wg.Go(func() { w.m.Close() })
		}
	}
	wg.Wait()
}

// collect is for when the workers have ended.
func collect(workers []*worker) (spans []span) {
	for _, w := range workers {
		spans = append(spans, w.spans...)
	}
	return spans
}

// timeout is the session timeout that the server has granted.
func (w *worker) timeout(ctx context.Context) (time.Duration, error) {
	s, err := w.m.Session(ctx)
	if err != nil {
		return 0, err
	}
	return s.Timeout(), nil
}

// run takes one turn after the other until ctx ends.
func (w *worker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.turn(ctx); err != nil {
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("%s: %w", w.name, err)
		}
		pause(ctx, around(w.length/20))
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
	h := newHold(w, held)
	w.show.lane(w.number, holding)
	w.show.say(w.name, "has the lock", "token %d, after waiting %s", h.token, short(h.from.Sub(asked)))

	value, err := w.do(h)

	end := h.end()
	w.spans = append(w.spans, end)
	w.show.lane(w.number, resting)
	if err == nil {
		w.show.say(w.name, "lets go", "wrote %d, held it for %s", value, short(end.until.Sub(end.from)))
	}
	err = w.lock.Unlock()
	if errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrClosed) {
		w.lost(ctx, h, end, value)
		return nil
	}
	return err
}

// do is the work that needs the lock: read a number, think about it, and write the
// next number. It returns the number that it has written or would have written.
func (w *worker) do(h *hold) (value int, err error) {
	if value, err = w.res.read(w.name, h.token); err != nil {
		w.show.say(w.name, "is refused", "%v", err)
		return value, err
	}
	value++
	if w.sab.offer(h) {
		select {
		case <-h.free:
		case <-h.held.Done():
		}
	}
	pause(h.held, around(w.length/30))
	// Write only while the hold lives. The token protects the resource from a worker
	// that is wrong about its hold.
	if h.held.Err() != nil {
		return value, context.Cause(h.held)
	}
	if err = w.res.write(w.name, h.token, value, false); err != nil {
		w.show.say(w.name, "is refused", "%v", err)
	}
	return value, err
}

// lost reports a lost lock, and then writes late, as a process does that slept
// through the loss. The resource must refuse the write.
func (w *worker) lost(ctx context.Context, h *hold, end span, value int) {
	if struck := h.struckAt(); struck.IsZero() {
		w.show.alarm(w.name, "LOST the lock", "%v", context.Cause(h.held))
	} else {
		w.show.alarm(w.name, "LOST the lock", "and knew it %s after the fault", short(end.until.Sub(struck)))
	}
	if !w.res.overtaken(ctx, h.token) {
		return
	}
	if err := w.res.write(w.name, h.token, value, true); err != nil {
		w.show.alarm(w.name, "writes late", "as if it had slept: REFUSED, %v", err)
	} else {
		w.show.alarm(w.name, "writes late", "as if it had slept: ACCEPTED, which must not be")
	}
}

// around is d, give or take 40 percent.
func around(d time.Duration) time.Duration {
	return d*3/5 + rand.N(d*4/5)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
