package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// The events of the participant of one Enter at a double barrier.
type (
	arrives struct{ id int } // the participant arrives and is counted
	enters  struct{ id int }
	leaves  struct{ id int }
	departs struct{ id int } // its Leave returns
	// vanishes is the event of a participant whose time of arrival or of leaving is unknown.
	vanishes struct{ id int }
)

type idSet [4]uint64

func (s idSet) has(id int) bool { return s[id/64]>>(id%64)&1 != 0 }

func (s idSet) with(id int) idSet {
	s[id/64] |= 1 << (id % 64)
	return s
}

func (s idSet) without(id int) idSet {
	s[id/64] &^= 1 << (id % 64)
	return s
}

func (s idSet) size() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// rounds returns the model of a DoubleBarrier of a size: no participant enters before size
// participants have arrived, and none departs before all have left. The round of every participant
// that has entered is known: a participant of one round does not count for another round.
func (k *roundKeeper) rounds(size int) porcupine.Model {
	type state struct {
		round                 int
		waiting, inside, left idSet
	}
	over := func(s state) state {
		if s.inside == (idSet{}) {
			s.left = idSet{}
		}
		return s
	}
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(was, input, _ any) (bool, any) {
			s := was.(state)
			switch op := input.(type) {
			case arrives:
				s.waiting = s.waiting.with(op.id)
				return true, s
			case enters:
				if s.inside.has(op.id) {
					return true, s
				}
				round := k.roundOf[op.id]
				if s.inside != (idSet{}) || !s.waiting.has(op.id) || round <= s.round {
					return false, s
				}
				s.round = round
				for id := range k.last {
					if r := k.roundOf[id]; s.waiting.has(id) && (r == round || r == anyRound) {
						s.waiting, s.inside = s.waiting.without(id), s.inside.with(id)
					}
				}
				return s.inside.size() >= size, s
			case leaves:
				if !s.inside.has(op.id) {
					return false, s
				}
				s.inside, s.left = s.inside.without(op.id), s.left.with(op.id)
				return true, over(s)
			case departs:
				return !s.inside.has(op.id) && !s.left.has(op.id), s
			case vanishes:
				if !s.waiting.has(op.id) && !s.inside.has(op.id) {
					return false, s
				}
				s.waiting, s.inside = s.waiting.without(op.id), s.inside.without(op.id)
				return true, over(s)
			}
			return false, s
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%T%v", input, input) },
	}
}

// anyRound is the round of a participant that has not entered.
const anyRound = 0

// opened records the begin of a round.
func (k *roundKeeper) opened() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun = append(k.begun, k.h.clock.Add(1))
}

// enter records the round of a participant that has entered by some time: the latest round that had
// begun by then. It returns the time at which the round began.
func (k *roundKeeper) enter(id int, by int64) (begun int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.roundOf[id] = -1 // a round that has never begun
	for i, at := range k.begun {
		if at < by {
			k.roundOf[id], begun = i+1, at
		}
	}
	return begun
}

// multiDelete is the beginning of a deletion in a multi.
const multiDelete = "\x00\x00\x00\x02\x00\xff\xff\xff\xff"

var doubleBarriers = &workload{name: "doublebarrier", small: true, mishaps: []faultKind{limp, limpAll}, aims: []network.Strike{
	{Op: opMulti, Has: "/ready", And: "anyone"}, // a create has an ACL
	{Op: opMulti, Has: "/ready", Lacks: "anyone"},
	{Op: opMulti, Has: multiDelete, Lacks: "/ready"},
}, start: func(w *world) func(*simClient, action) error {
	const path = "/barriers/b"
	size := 2
	if len(w.plan.clients) > 4 {
		size = 3
	}
	b := &roundKeeper{roundOf: make(map[int]int), ghosts: make(map[int][]ghost)}
	b.h = w.object("doublebarrier", b.rounds(size))
	w.finish = append(w.finish, func() {
		for i := range w.plan.clients {
			b.lay(i, math.MaxInt64)
		}
	})
	w.onChange(path+"/ready", func(there bool) {
		if there {
			b.opened()
		}
	})
	value := make([]*zksync.DoubleBarrier, len(w.plan.clients))
	for i := range value {
		var opts []zksync.DoubleBarrierOption
		if i%2 == 0 {
			opts = append(opts, zksync.WithID(fmt.Sprint(i)))
		}
		value[i] = zksync.NewDoubleBarrier(w.managers[i%w.plan.managers], path, size, opts...)
	}
	w.dirs = append(w.dirs, path)
	w.probes = append(w.probes, func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, size)
		for i := range size {
			wg.Go(func() {
				v := zksync.NewDoubleBarrier(w.managers[i%w.plan.managers], path, size)
				if errs[i] = v.Enter(ctx); errs[i] == nil {
					errs[i] = v.Leave(ctx)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return func(c *simClient, a action) error {
		if a.patience == 0 {
			a.patience = 3 * w.plan.timeout() // finally there may be no other participant left
		}
		return b.round(c, a, value[c.number])
	}
}}

// A roundKeeper keeps the history of a double barrier.
type roundKeeper struct {
	h *history

	mu      sync.Mutex
	last    int
	begun   []int64     // time at which each round was opened
	roundOf map[int]int // round of each participant, counted from 1
	ghosts  map[int][]ghost
}

// A ghost is a participant that may or may not still be counted.
type ghost struct {
	id    int
	since int64
}

func (k *roundKeeper) newID() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	return k.last - 1
}

// ghost records a participant that may have been counted from some time on.
func (k *roundKeeper) ghost(client, id int, called int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ghosts[client] = append(k.ghosts[client], ghost{id, called})
}

// lay records that the ghosts of a client are no longer counted.
func (k *roundKeeper) lay(client int, gone int64) {
	k.mu.Lock()
	ghosts := k.ghosts[client]
	delete(k.ghosts, client)
	k.mu.Unlock()
	for _, g := range ghosts {
		k.h.note(client, arrives{g.id}, g.since, gone)
		k.h.note(client, vanishes{g.id}, g.since, gone)
	}
}

// settled reports whether a cancelled call has completed its clean-up. If not, the rest of the
// clean-up happens when a server can be reached.
func (c *simClient) settled(ctx context.Context) bool {
	ended, ok := ctx.Deadline()
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if !c.gaveUpAt.IsZero() {
		ended, ok = c.gaveUpAt, true
	}
	return ok && time.Since(ended) < min(c.w.plan.timeout()/6, time.Second)
}

// round makes one Enter and its Leave.
func (k *roundKeeper) round(c *simClient, a action, b *zksync.DoubleBarrier) error {
	h, id := k.h, k.newID()
	ctx, cancel := c.context(a)
	defer cancel()
	before := c.w.lastSession(c.manager)
	called := h.clock.Add(1)
	err := b.Enter(ctx)
	returned := h.clock.Add(1)
	c.w.say("client %d as %d: entered: %v", c.number, id, err)
	same := before == c.w.sessionOf(c.manager)
	if !same {
		k.ghost(c.number, k.newID(), called) // under an earlier session it may still be counted for a while
	}
	switch {
	case errors.Is(err, zksync.ErrIDInUse):
		return nil
	case err != nil && ctx.Err() != nil && gaveUp(err) && same && c.settled(ctx):
		return nil // its arrival was undone before any participant passed because of it
	case err != nil && (ctx.Err() != nil && gaveUp(err) || c.w.refused(err)):
		k.ghost(c.number, id, called)
		return nil
	case err != nil:
		return fmt.Errorf("enter: %w", err)
	}
	time.Sleep(a.stay)
	ctx, cancel = c.context(a)
	defer cancel()
	leaving := h.clock.Add(1)
	err = b.Leave(ctx)
	gone := h.clock.Add(1)
	if c.w.refused(err) {
		gone = math.MaxInt64 // it continues in the background
	}
	c.w.say("client %d as %d: left: %v", c.number, id, err)
	if h.doubtful(c.manager, called, returned, err) {
		k.ghost(c.number, id, called)
		return withoutLoss(err)
	}
	begun := k.enter(id, returned)
	if begun < called {
		return errors.New("it has entered a round that had begun before it came")
	}
	k.lay(c.number, begun) // Enter returns when nothing of the value's ghosts is left
	h.note(c.number, arrives{id}, called, begun)
	h.note(c.number, enters{id}, begun, returned)
	switch {
	case err == nil:
		h.note(c.number, leaves{id}, h.end(c.manager, returned, leaving), gone)
		h.note(c.number, departs{id}, leaving, gone)
	case errors.Is(err, zksync.ErrLost):
		h.note(c.number, vanishes{id}, returned, gone) // it is harmless if the others see it later
	case ctx.Err() != nil && gaveUp(err) || c.w.refused(err):
		h.note(c.number, vanishes{id}, h.end(c.manager, returned, leaving), gone)
	default:
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}
