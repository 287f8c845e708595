package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// A judge checks the holds of one lock or of another primitive: no more units are held at the same
// time than exist, and tokens grow.
type judge struct {
	stage  *stage
	name   string
	units  int  // number of units that may be held at the same time
	fenced bool // a hold of all units has a greater token than every earlier hold

	mu     sync.Mutex
	holds  []*hold
	newest int64 // greatest token of all holds
	writer int64 // greatest token of a hold of all units
}

// judge returns a new judge of a primitive with the given number of units.
func (s *stage) judge(name string, units int, fenced bool) *judge {
	j := &judge{stage: s, name: name, units: units, fenced: fenced}
	s.judges = append(s.judges, j)
	return j
}

// A hold is a lock, a unit or a term that a client has acquired.
type hold struct {
	judge    *judge
	client   *client
	call     context.Context // passed to the call that acquired the hold
	ctx      context.Context // of the hold
	units    int
	token    int64
	session  int64 // newest session of the client at the begin of the hold
	since    time.Time
	released bool // guarded by judge.mu
}

func (h *hold) String() string {
	return fmt.Sprintf("client %d with token %d", h.client.number, h.token)
}

// hold makes a call that acquires, and returns the hold, or nil if the call failed with an allowed
// error.
func (c *client) hold(j *judge, units int, what string, acquire func(ctx context.Context) (context.Context, error), also ...allowance) *hold {
	ctx := c.context()
	var held context.Context
	if err := c.doWith(ctx, what, func(ctx context.Context) (err error) {
		held, err = acquire(ctx)
		return err
	}, also...); err != nil {
		c.forget(ctx)
		return nil
	}
	token, _ := zksync.Token(held)
	h := &hold{judge: j, client: c, call: ctx, ctx: held, units: units, token: token, session: c.stage.net.Session(c.number), since: time.Now()}
	j.granted(h)
	return h
}

// holdOn makes a call that turns a hold into another hold with the same token.
func (c *client) holdOn(h *hold, what string, change func(ctx context.Context) (context.Context, error), also ...allowance) *hold {
	ctx := c.context()
	var held context.Context
	if err := c.doWith(ctx, what, func(ctx context.Context) (err error) {
		held, err = change(ctx)
		return err
	}, also...); err != nil {
		c.forget(ctx)
		return nil
	}
	next := &hold{judge: h.judge, client: c, call: ctx, ctx: held, units: h.units, session: h.session, since: h.since}
	if next.token, _ = zksync.Token(held); next.token != h.token {
		c.stage.fail("%s: %v goes on as %v", h.judge.name, h, next)
	}
	h.judge.mu.Lock()
	defer h.judge.mu.Unlock()
	h.judge.holds = append(h.judge.holds, next)
	return next
}

// granted checks a new hold.
func (j *judge) granted(h *hold) {
	j.mu.Lock()
	defer j.mu.Unlock()
	held := h.units
	if j.name == semaphorePath {
		held += j.stage.barged()
	}
	for _, other := range j.holds {
		if other.lives() {
			held += other.units
		}
	}
	if held > j.units && h.lives() {
		j.stage.fail("%s: %v acquired, and %d of %d units are held", j.name, h, held, j.units)
		for _, other := range j.holds {
			if other.lives() {
				j.stage.fail("%s: %v acquired while it was held by %v", j.name, h, other)
			}
		}
	}
	if j.fenced && !h.forced() {
		if h.token <= j.writer && !j.shares(h) {
			j.stage.fail("%s: %v, though there was a writer with token %d before", j.name, h, j.writer)
		}
		if h.units == j.units && h.token <= j.newest && !j.shares(h) {
			j.stage.fail("%s: %v, though there was token %d before", j.name, h, j.newest)
		}
	}
	if h.units == j.units {
		j.writer = max(j.writer, h.token)
	}
	j.newest = max(j.newest, h.token)
	j.holds = append(j.holds, h)
}

// shares reports whether a hold has the token of an earlier hold of the same client, which passed
// it on in memory.
func (j *judge) shares(h *hold) bool {
	last := len(j.holds) - 1
	return last >= 0 && j.holds[last].client == h.client && j.holds[last].token == h.token
}

// lives reports whether a hold excludes other holds: it was not released, its context lives, and
// neither its session was ended nor its znode removed by force, which no client can notice in time. The contexts of a
// suspended client end in time, too, because only its application and its frames stop. judge.mu
// is held.
func (h *hold) lives() bool {
	return !h.released && h.ctx.Err() == nil && !h.forced()
}

// forced reports whether the session was ended by force during the hold or directly before. If the
// answer that acquired the hold was late, the session may have ended up to a session timeout before.
func (h *hold) forced() bool {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	for _, end := range h.client.forced {
		if end.at.After(h.since.Add(-time.Second)) || end.session == h.session && end.at.After(h.since.Add(-timeout)) {
			return true
		}
	}
	return false
}

// keep keeps the hold for d, or until its context ends.
func (h *hold) keep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.ctx.Done():
	}
	h.client.wake()
}

// release ends the hold by calling f, whose outcome must be allowed.
func (h *hold) release(what string, f func() error) {
	c, s := h.client, h.judge.stage
	h.judge.mu.Lock()
	h.released = true
	h.judge.mu.Unlock()
	ended := h.ctx.Err() != nil
	lost := ended && h.call.Err() == nil && errors.Is(context.Cause(h.ctx), zksync.ErrLost) && !errors.Is(context.Cause(h.ctx), zksync.ErrClosed)
	if lost && !s.mayLose() && !s.removed(context.Cause(h.ctx)) {
		s.fail("%v has lost %s, and no fault explains it: %v", h, h.judge.name, context.Cause(h.ctx))
	}
	if ended && h.call.Err() == nil && !lost && !errors.Is(context.Cause(h.ctx), zksync.ErrClosed) {
		s.fail("the context of %v has ended because of %v", h, context.Cause(h.ctx))
	}
	begun := time.Now()
	err := c.end(what, f, orLost)
	if took := time.Since(begun); took > timeout && s.harm()&suspends == 0 {
		s.fail("client %d: %s took %v", c.number, what, took)
	}
	if lost && err == nil {
		s.fail("client %d: %s: nil, though the context had ended because of a loss", c.number, what)
	}
	c.forget(h.call)
}

// drop ends a hold that continues as another hold.
func (h *hold) drop() {
	h.judge.mu.Lock()
	h.released = true
	h.judge.mu.Unlock()
	h.client.forget(h.call)
}

// A hold is not wrong if its session was ended by force while the answer that acquired the hold was
// late: no client can know of that end.
func TestForcedEndBeforeALateAnswer(t *testing.T) {
	c, err := parseCase("election-handover/0.1.down.7/delay-quarter/0.1.down.7/expire")
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, c, nil, true)
	if out.struck != 2 || len(out.wrong) > 0 {
		t.Errorf("%d faults have struck, %q\n%s\n%s", out.struck, out.wrong, lines(frames(out)), lines(out.said))
	}
}
