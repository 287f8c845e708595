package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/simulation/network"
)

// The ways to use a queue: only Take, in order; Take that is cancelled; Chan; Chan with one
// consumer, in order; Messages; and all these ways together.
const (
	takeInOrder = iota
	takeOrGiveUp
	chanOfMany
	chanOfOne
	messagesWay
	everyWay
)

// takeUnknown marks a message that Take has returned with ErrOutcomeUnknown: the message may be
// delivered again, until another Take returns it.
const takeUnknown = -1

// waysOfQueues has the ways, repeated according to their frequency.
var waysOfQueues = []int{takeInOrder, takeOrGiveUp, chanOfMany, chanOfMany, chanOfOne, messagesWay, everyWay, everyWay}

// Requests of queues: claims of Chan and Messages; removals, returned claims, and Takes; and Puts.
var requestsOfQueues = []network.Strike{
	{Op: opMulti, Has: "zksync-claims/", Lacks: "zksync-markers/"},
	{Op: opMulti, Has: "zksync-claims/", And: "zksync-markers/"},
	{Op: opMulti, Has: "zksync-markers/", Lacks: "zksync-claims/"},
}

// The workloads with queues. crowds has many values per session that wait for the same messages.
var (
	queues = &workload{name: "queue", losses: requestsOfQueues, start: startQueue(waysOfQueues)}
	crowds = &workload{name: "crowd", losses: slices.Concat(requestsOfQueues[:1], requestsOfQueues[:2]), crowd: true, start: startQueue([]int{chanOfMany, messagesWay, everyWay})}
)

func startQueue(ways []int) func(w *world) func(*simClient, action) error {
	return func(w *world) func(*simClient, action) error { return newStream(w, ways).act }
}

func newStream(w *world, ways []int) *stream {
	r := w.plan.rnd(forWorkload)
	st := &stream{w: w, path: "/queues/q", put: map[int]*putting{}, received: map[int][]*receipt{}, lost: map[int][]time.Time{},
		consumers: map[*time.Time]bool{}, producers: map[*time.Time]bool{}}
	st.way = ways[r.IntN(len(ways))]
	if st.kind = kindsOfQueues[0]; st.way != takeInOrder && st.way != chanOfOne {
		st.kind = kindsOfQueues[r.IntN(len(kindsOfQueues))]
	}
	st.h = w.object("queue", fifo())
	w.objects[len(w.objects)-1].check = st.disorder
	if st.kind.name == plainQueue.name && st.way != chanOfOne && r.IntN(3) == 0 {
		st.capacity = 1 + r.IntN(12)
	}
	st.recruit(r)
	w.say("a %s is used by %s", st.kind.name, [...]string{"Take", "impatient Take", "Chan", "one Chan", "Messages", "Take, Chan and Messages"}[st.way])
	for i, m := range w.managers {
		go func() { // not a helper, because sessions are also lost after the last fault
			for state := range m.States(context.Background()) {
				st.mu.Lock()
				if state == session.Lost && !st.over {
					st.lost[i] = append(st.lost[i], time.Now())
				}
				st.mu.Unlock()
			}
		}()
	}
	f := newFeeder(st, r)
	w.helper(f.run)
	w.closers = append(w.closers, func() { st.leaveOne(f.user) })
	w.finish = append(w.finish, st.settle)
	w.dirs = append(w.dirs, st.path+"/zksync-idle")
	w.finish = append(w.finish, st.checkLedgers)
	return st
}

// recruit draws the users of the queue and the way of each user. Clients of one Manager may share a
// value.
func (st *stream) recruit(r *rand.Rand) {
	for i := range st.w.plan.clients {
		manager := i % st.w.plan.managers
		u := &queueUser{st: st, m: st.w.managers[manager], capacity: st.capacity, way: st.way, consumes: i == 1 || i > 0 && r.IntN(4) > 0}
		u.prefetch = []int{0, 0, 1, 2, 5}[r.IntN(5)]
		switch st.way {
		case takeInOrder:
			u.way = takeOrGiveUp
		case chanOfOne:
			u.way, u.consumes = chanOfMany, i == 1
		case everyWay:
			u.way = []int{takeOrGiveUp, chanOfMany, chanOfMany, messagesWay}[r.IntN(4)]
		}
		u.v = u.open()
		if i >= st.w.plan.managers && st.way != chanOfOne && r.IntN(3) == 0 {
			u = st.users[i-st.w.plan.managers]
		}
		st.users = append(st.users, u)
	}
	st.last = st.users[1]
	if i := r.IntN(len(st.users)); st.users[i].consumes {
		st.last = st.users[i]
	}
}

// act is one action of a client.
func (st *stream) act(c *simClient, a action) error {
	u := st.users[c.number]
	consumes := u.consumes && (a.kind < 85 || st.way == chanOfOne)
	if st.way == takeInOrder || st.way == takeOrGiveUp {
		consumes = a.kind < 50
	}
	if !consumes {
		ctx, cancel := c.context(a)
		defer cancel()
		n := 1
		if a.kind%3 == 0 {
			n = a.units * a.units
		}
		return st.puts(ctx, c.number, u.value(), n, a)
	}
	if a.kind%16 == 15 && st.way != takeInOrder && st.way != chanOfOne {
		u.renew()
	}
	return st.takes(c, a, u)
}

// puts puts n messages.
func (st *stream) puts(ctx context.Context, client int, v *queueValue, n int, a action) error {
	if n == 0 {
		return nil
	}
	rank, due, put := st.kind.ready(v, a)
	all, data := st.note(client, n, rank, due)
	if st.capacity > 0 { // consumers that have ended make no room
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 3*st.w.plan.timeout())
		defer cancel()
	}
	done := st.waiting(st.producers)
	err := put(ctx, data)
	done()
	returned := st.h.clock.Add(1)
	st.w.say("client %d has put %s to %s: %v", client, data[0], data[n-1], err)
	ours := n
	if err != nil {
		ours = 0
		var part *zksync.PutAllError
		if errors.As(err, &part) {
			ours = part.Put
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, p := range all {
		if i < ours {
			p.returned, p.unknown = returned, false
		} else {
			p.unknown, p.never = errors.Is(err, zksync.ErrOutcomeUnknown), !errors.Is(err, zksync.ErrOutcomeUnknown)
		}
	}
	if err != nil && !(ctx.Err() != nil && gaveUp(err)) && !(v.closing && errors.Is(err, zksync.ErrQueueClosed)) {
		return fmt.Errorf("put: %w", err)
	}
	return nil
}

// takes receives a message in the way of the client or in another way.
func (st *stream) takes(c *simClient, a action, u *queueUser) error {
	v, way := u.value(), u.way
	// A client that shares a value more often calls Take beside the value's channel.
	guest := c.number >= st.w.plan.managers && st.users[c.number-st.w.plan.managers] == u
	if st.way == everyWay && (a.kind%7 < 2 || guest && a.kind%7 < 5) {
		way = takeOrGiveUp
	}
	if st.way == takeInOrder {
		a.patience = 0
	}
	ctx, cancel := c.context(a)
	defer cancel()
	called := st.h.clock.Add(1)
	defer st.stir()
	switch way {
	case takeOrGiveUp:
		if st.way != takeInOrder {
			defer st.impatience(c, a, cancel)()
		}
		return st.take(ctx, c, a, v, called)
	case chanOfMany:
		waited := st.waiting(st.consumers)
		select {
		case data, ok := <-v.Chan():
			waited()
			if !ok {
				return st.closed(v)
			}
			st.receive(c, v, chanOfMany, data, called)
			time.Sleep(a.stay / 4)
		case <-time.After(st.w.plan.timeout()):
			waited()
		case <-ctx.Done():
			waited()
		}
		return nil
	}
	waited := st.waiting(st.consumers)
	select {
	case m, ok := <-v.Messages():
		waited()
		if !ok {
			return st.closed(v)
		}
		return st.handle(c, a, v, m, called)
	case <-time.After(st.w.plan.timeout()):
	case <-ctx.Done():
	}
	waited()
	return nil
}

// impatience cancels a Take during its work: after about the duration of a Take, or when the answer
// to a removal is about to arrive.
func (st *stream) impatience(c *simClient, a action, cancel func()) (stop func()) {
	switch a.kind % 3 {
	case 0:
		t := time.AfterFunc(1+a.stay%(2*time.Millisecond), cancel)
		return func() { t.Stop() }
	case 1:
		r := requestsOfQueues[1]
		return st.w.net.Strike(network.Strike{Client: c.manager, Op: r.Op, Has: r.Has, And: r.And, Nth: a.units / 2,
			Dir: network.Direction(a.units % 2), Do: network.Pass, Then: func(network.Frame) { cancel() }})
	}
	return func() {}
}

func (st *stream) take(ctx context.Context, c *simClient, a action, v *queueValue, called int64) (err error) {
	var data []byte
	ok := true
	if a.kind%4 == 0 {
		data, ok, err = v.TryTake(ctx)
	} else {
		waited := st.waiting(st.consumers)
		data, err = v.Take(ctx)
		waited()
	}
	st.w.say("client %d has taken %q: %v, %v", c.number, data, ok, err)
	switch {
	case err == nil && ok:
		st.receive(c, v, takeOrGiveUp, data, called)
	case errors.Is(err, zksync.ErrOutcomeUnknown) && data != nil:
		if ctx.Err() == nil && !st.isClosing(v) && !st.w.refused(err) {
			return fmt.Errorf("take: %w", err)
		}
		st.receive(c, v, takeUnknown, data, called)
	case err == nil || ctx.Err() != nil && gaveUp(err) || st.w.refused(err):
	case errors.Is(err, zksync.ErrQueueClosed):
		return st.closed(v)
	default:
		return fmt.Errorf("take: %w", err)
	}
	return nil
}

// handle acknowledges a message, returns it with Nack, or forgets it.
func (st *stream) handle(c *simClient, a action, v *queueValue, m *zksync.Message, called int64) error {
	r, id := st.receive(c, v, messagesWay, m.Data, called)
	time.Sleep(a.stay / 4)
	c.wake()
	verb, do := "ack", m.Ack
	switch a.kind % 5 {
	case 0:
		verb, do = "nack", m.Nack
	case 1:
		if st.mayKeep(v) {
			return nil
		}
	}
	st.mu.Lock()
	r.settling = st.h.clock.Add(1)
	st.mu.Unlock()
	err := do(context.Background())
	st.stir()
	settled := st.h.clock.Add(1)
	st.w.say("client %d: %s of %d: %v", c.number, verb, id, err)
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case errors.Is(err, zksync.ErrLost):
		r.lost = true
	case err != nil:
		return fmt.Errorf("%s: %w", verb, err)
	case verb == "ack":
		r.acked = settled
	}
	return nil
}

// mayKeep reports whether a consumer may keep one more message without an Ack or a Nack: with as
// many messages as WithPrefetch allows it would receive no further message.
func (st *stream) mayKeep(v *queueValue) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	v.spare--
	return v.spare >= 0
}

// isClosing reports whether a value is being closed.
func (st *stream) isClosing(v *queueValue) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return v.closing
}

// closed checks the error of a value whose channel was closed. A value that a refusal of the servers has
// ended is replaced.
func (st *stream) closed(v *queueValue) error {
	if st.w.refused(v.Err()) {
		for _, u := range st.distinct() {
			if u.value() == v {
				u.renew()
			}
		}
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := v.Err(); !v.closing || err != nil && !errors.Is(err, zksync.ErrQueueClosed) {
		return fmt.Errorf("the queue was closed: %w", v.Err())
	}
	return nil
}
