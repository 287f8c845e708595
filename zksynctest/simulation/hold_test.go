package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A holding is a hold whose context was alive when it was last checked.
type holding struct {
	ctx     context.Context
	manager int
	h       *history
	session int64 // 0 until it is determined
	what    string
}

// A resource is protected by a lock, and checks fencing tokens.
type resource struct {
	mu     sync.Mutex
	newest int64
	value  int
}

func (r *resource) read(token int64) (value int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.newest {
		return 0, false
	}
	r.newest = token
	return r.value, true
}

// write replaces value with value+1. It returns an error if the resource had another value although
// the token is valid.
func (r *resource) write(token int64, value int) (ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.newest {
		return false, nil
	}
	r.newest = token
	if r.value != value {
		return true, fmt.Errorf("token %d has read %d and then found %d", token, value, r.value)
	}
	r.value++
	return true, nil
}

// A tenancy has the parameters of hold.
type tenancy struct {
	h       *history
	value   any // the value that acquires
	what    take
	acquire func(ctx context.Context) (held context.Context, ok bool, err error)
	release func() error
	res     *resource                                              // nil if tokens protect no resource
	fenced  bool                                                   // tokens grow
	silent  bool                                                   // the release reports no loss
	record  func(called, returned, leaving, gone int64, err error) // replaces take and give, if not nil
}

// hold makes one hold, including its release, and records the times and results of the calls in the
// history.
func (c *simClient) hold(a action, y tenancy) error {
	ctx, cancel := c.context(a)
	defer cancel()
	h, w := y.h, c.w
	called := h.clock.Add(1)
	held, ok, err := y.acquire(ctx)
	switch {
	case err != nil && ctx.Err() != nil && gaveUp(err):
		return nil
	case err != nil:
		return fmt.Errorf("acquire: %w", err)
	case !ok:
		return nil
	}
	c.wake()
	returned := h.clock.Add(1)
	token, _ := zksync.Token(held)
	var endedAt atomic.Int64
	unfollow := context.AfterFunc(held, func() { endedAt.Store(h.clock.Add(1)) })
	defer unfollow()
	forget := w.watch(&holding{ctx: held, manager: c.manager, h: h, what: fmt.Sprintf("client %d with token %d", c.number, token)})
	c.w.say("client %d holds with token %d", c.number, token)
	wrong := c.use(a, y, held, token)
	leaving := h.clock.Add(1)
	lost := lossOf(held)
	forget()
	if lost {
		w.mu.Lock()
		w.lost++
		w.mu.Unlock()
	}
	err = y.release()
	if at := endedAt.Load(); at != 0 && at < leaving && (y.silent || errors.Is(err, zksync.ErrLost)) {
		leaving = at // also if the caller's context ended: a caller that observes its context learns of no later loss
	}
	c.w.say("client %d has released with token %d: %v", c.number, token, err)
	gone := h.clock.Add(1)
	if w.refused(err) {
		gone = math.MaxInt64 // the release continues in the background
	}
	if y.record != nil {
		y.record(called, returned, leaving, gone, err)
	} else if !h.doubtful(c.manager, called, returned, err) {
		var result any
		if y.fenced {
			result = grant{token, y.value}
		}
		h.noteResult(c.number, y.what, result, called, returned)
		h.note(c.number, give(y.what), h.end(c.manager, returned, leaving), gone)
	}
	switch {
	case err != nil && !errors.Is(err, zksync.ErrLost):
		return fmt.Errorf("release: %w", err)
	case err == nil && lost:
		return errors.New("the context had ended because of a loss, of which the release knows nothing")
	}
	return wrong
}

// use simulates the client's work during a hold.
func (c *simClient) use(a action, y tenancy, held context.Context, token int64) error {
	before := y.h.clock.Load()
	value, fresh := 0, true
	if y.res != nil {
		value, fresh = y.res.read(token)
	}
	if a.stall {
		time.Sleep(a.stay)
	} else {
		stay(held, a.stay)
	}
	c.wake()
	if y.res == nil || !fresh && held.Err() != nil {
		return nil
	}
	alive := held.Err() == nil
	written, err := false, error(nil)
	if fresh {
		written, err = y.res.write(token, value)
	}
	if !written && alive && !y.h.forcedSince(c.manager, before) {
		return fmt.Errorf("the resource has refused token %d, whose hold has not ended", token)
	}
	return err
}

func stay(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// forcedSince reports whether a session of the Manager was ended by force after a time, or before
// it without the Manager's knowledge.
func (h *history) forcedSince(manager int, since int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.broken[manager] {
		if b[0] >= since || b[1] >= since {
			return true
		}
	}
	return false
}

// watch makes the monitor check a hold until forget is called.
func (w *world) watch(x *holding) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holdings[x] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.holdings, x)
	}
}

// monitor checks whether the sessions of all holds still exist, directly after the instants at
// which the server may expire sessions.
func (w *world) monitor(ctx context.Context) {
	for {
		next := w.begun.Add(time.Since(w.begun).Truncate(w.plan.tick/2) + w.plan.tick/2 + 1)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return
		}
		w.lookAtHoldings()
	}
}

func (w *world) lookAtHoldings() {
	w.mu.Lock()
	var all []*holding
	for x := range w.holdings {
		all = append(all, x)
	}
	w.mu.Unlock()
	if len(all) == 0 {
		return
	}
	there := make(map[int64]bool)
	for _, s := range w.srv.Sessions() {
		there[s.ID] = true
	}
	for _, x := range all {
		if x.session == 0 {
			// No hold has an older session than the present session.
			if w.managers[x.manager].State() == session.Connected {
				if s := w.sessionOf(x.manager); s != nil {
					x.session = s.ID()
				}
			}
			continue
		}
		if !there[x.session] && x.ctx.Err() == nil && !x.h.forcedSince(x.manager, 0) {
			w.fail("%s goes on holding, whose session the server has given up", x.what)
			x.session = 0
		}
	}
}
