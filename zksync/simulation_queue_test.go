package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// What happens to a queue.
type (
	enqueued struct{ id int }
	dequeued struct{ id int }
)

// fifo is the model of a queue. It is there for pictures: the number of orders
// in which messages may have been put at the same time is too much for a search, and
// disorder finds out the same.
func fifo() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []int(nil) },
		Step: func(state, input, _ any) (bool, any) {
			all := state.([]int)
			switch op := input.(type) {
			case enqueued:
				return true, append(slices.Clone(all), op.id)
			case dequeued:
				if len(all) == 0 || all[0] != op.id {
					return false, all
				}
				return true, all[1:]
			}
			return false, all
		},
		Equal:             func(a, b any) bool { return slices.Equal(a.([]int), b.([]int)) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%T%v", input, input) },
	}
}

// What a queue is used for: Take alone, in order; Take that is given up; Chan;
// Chan with one consumer, in order; Messages.
const (
	takeInOrder = iota
	takeOrGiveUp
	chanOfMany
	chanOfOne
	messagesWay
	waysOfQueues
)

// A stream is the history of one queue.
type stream struct {
	w    *world
	way  int
	path string
	h    *history

	mu       sync.Mutex
	last     int
	put      map[int]*putting
	received map[int][]*receipt
	lost     map[int][]int64 // when a Manager has lost a session
}

// A putting is a Put: of what it is not known whether it happened.
type putting struct {
	client           int
	called, returned int64
	unknown, never   bool
}

// A receipt is a message that somebody was given.
type receipt struct {
	client, manager int
	value           any
	called, at      int64
	settling        int64 // when it was acknowledged or given back, 0 if it was not
	acked           int64 // when that was answered, 0 if it was not
	lost            bool  // or that it is not ours any more
}

var queues = &workload{name: "queue", start: func(w *world) func(*simClient, action) error {
	const path = "/queues/q"
	r := w.plan.rnd(forWorkload)
	st := &stream{w: w, way: r.IntN(waysOfQueues), path: path, put: map[int]*putting{}, received: map[int][]*receipt{}, lost: map[int][]int64{}}
	st.h = w.object("queue", fifo())
	w.objects[len(w.objects)-1].check = st.disorder
	values := make([]*zksync.Queue, len(w.plan.clients))
	for i := range values {
		values[i] = zksync.NewQueue(w.managers[i%w.plan.managers], path)
	}
	w.say("the queue is used by %s", [...]string{"Take", "impatient Take", "Chan", "one Chan", "Messages"}[st.way])
	for i, m := range w.managers {
		w.helper(func(ctx context.Context, _ *simClient) {
			for state := range m.States(ctx) {
				if state == session.Lost {
					st.mu.Lock()
					st.lost[i] = append(st.lost[i], st.h.clock.Add(1))
					st.mu.Unlock()
				}
			}
		})
	}
	// Who waits for a message gets one in the end.
	feeder := zksync.NewQueue(w.managers[0], path)
	w.helper(func(ctx context.Context, c *simClient) {
		for ctx.Err() == nil {
			stay(ctx, w.plan.timeout()/4)
			if err := st.puts(ctx, c.number, feeder, 1); err != nil {
				w.fail("the feeder: %v", err)
			}
		}
	})
	w.closers = append(w.closers, func() {
		for _, q := range append(values, feeder) {
			q.Close()
		}
		st.drain()
	})
	w.finish = append(w.finish, st.settle)
	w.dirs = append(w.dirs, path+"/zksync-claims", path+"/zksync-consumers")
	return func(c *simClient, a action) error {
		consumes := a.kind < 50
		switch st.way {
		case chanOfMany, messagesWay:
			consumes = c.number%2 == 1
		case chanOfOne:
			consumes = c.number == 1
		}
		if !consumes {
			ctx, cancel := c.context(a)
			defer cancel()
			n := 1
			if a.kind%3 == 0 {
				n = a.units * a.units
			}
			return st.puts(ctx, c.number, values[c.number], n)
		}
		if c.number%2 == 1 && st.way != takeInOrder && st.way != chanOfOne && a.kind >= 95 {
			values[c.number].Close()
			values[c.number] = zksync.NewQueue(c.m, path)
		}
		return st.takes(c, a, values[c.number])
	}
}}

// puts puts n messages.
func (st *stream) puts(ctx context.Context, client int, q *zksync.Queue, n int) error {
	all := make([]*putting, n)
	data := make([][]byte, n)
	called := st.h.clock.Add(1)
	st.mu.Lock()
	for i := range all {
		all[i] = &putting{client: client, called: called, returned: math.MaxInt64, unknown: true}
		st.put[st.last] = all[i]
		data[i] = []byte(strconv.Itoa(st.last))
		st.last++
	}
	st.mu.Unlock()
	var err error
	if n == 1 {
		err = q.Put(ctx, data[0])
	} else {
		err = q.PutAll(ctx, data...)
	}
	returned := st.h.clock.Add(1)
	st.w.say("client %d has put %s to %s: %v", client, data[0], data[n-1], err)
	done := n
	if err != nil {
		done = 0
		var part *zksync.PutAllError
		if errors.As(err, &part) {
			done = part.Put
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, p := range all {
		if i < done {
			p.returned, p.unknown = returned, false
		} else {
			p.unknown, p.never = errors.Is(err, zksync.ErrOutcomeUnknown), !errors.Is(err, zksync.ErrOutcomeUnknown)
		}
	}
	if err != nil && !(ctx.Err() != nil && gaveUp(err)) {
		return fmt.Errorf("put: %w", err)
	}
	return nil
}

// receive notes a message.
func (st *stream) receive(c *simClient, value any, data []byte, called int64) *receipt {
	at := st.h.clock.Add(1)
	id, err := strconv.Atoi(string(data))
	if err != nil {
		st.w.fail("received %q", data)
		return &receipt{}
	}
	st.w.say("client %d has received %d", c.number, id)
	r := &receipt{client: c.number, manager: c.manager, value: value, called: called, at: at}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.received[id] = append(st.received[id], r)
	return r
}

// takes receives a message, in one way or another.
func (st *stream) takes(c *simClient, a action, q *zksync.Queue) error {
	if st.way == takeInOrder {
		a.patience = 0
	}
	if st.way == takeOrGiveUp && a.kind%2 == 0 {
		a.patience = 1 + a.stay%(2*time.Millisecond) // about as long as a removal takes
	}
	ctx, cancel := c.context(a)
	defer cancel()
	called := st.h.clock.Add(1)
	switch st.way {
	case takeInOrder, takeOrGiveUp:
		var data []byte
		var err error
		ok := true
		if a.kind%4 == 0 {
			data, ok, err = q.TryTake(ctx)
		} else {
			data, err = q.Take(ctx)
		}
		if err == nil && ok {
			st.receive(c, q, data, called)
		}
		if err != nil && !(ctx.Err() != nil && gaveUp(err)) {
			return fmt.Errorf("take: %w", err)
		}
		return nil
	case chanOfMany, chanOfOne:
		select {
		case data, ok := <-q.Chan():
			if !ok {
				return fmt.Errorf("the channel was closed: %w", q.Err())
			}
			st.receive(c, q, data, called)
			time.Sleep(a.stay / 4)
		case <-time.After(st.w.plan.timeout()):
		case <-ctx.Done():
		}
		return nil
	}
	select {
	case m, ok := <-q.Messages():
		if !ok {
			return fmt.Errorf("the channel was closed: %w", q.Err())
		}
		return st.handle(c, a, q, m, called)
	case <-time.After(st.w.plan.timeout()):
	case <-ctx.Done():
	}
	return nil
}

// handle acknowledges a message, gives it back, or forgets it.
func (st *stream) handle(c *simClient, a action, q *zksync.Queue, m *zksync.Message, called int64) error {
	r := st.receive(c, q, m.Data, called)
	time.Sleep(a.stay / 4)
	verb, do := "ack", m.Ack
	if a.kind%5 == 0 {
		verb, do = "nack", m.Nack
	}
	settling := st.h.clock.Add(1)
	st.mu.Lock()
	r.settling = settling
	st.mu.Unlock()
	err := do(context.Background())
	settled := st.h.clock.Add(1)
	st.w.say("client %d: %s of %s: %v", c.number, verb, m.Data, err)
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

// drain takes what is left, when all consumers are closed.
func (st *stream) drain() {
	c := &simClient{w: st.w, number: len(st.w.plan.clients) + len(st.w.helpers), m: st.w.managers[0]}
	q := zksync.NewQueue(c.m, st.path)
	defer q.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), st.w.plan.timeout())
		called := st.h.clock.Add(1)
		data, ok, err := q.TryTake(ctx)
		cancel()
		if err != nil {
			st.w.fail("what is left cannot be taken: %v", err)
		}
		if !ok || err != nil {
			return
		}
		r := st.receive(c, q, data, called)
		r.settling, r.acked = r.at, r.at
	}
}

// settle checks what has become of all messages.
func (st *stream) settle() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id := range st.last {
		p, all := st.put[id], st.received[id]
		if st.w.failed() && p.unknown && len(all) == 0 {
			continue
		}
		switch {
		case p.never && len(all) > 0:
			st.w.fail("message %d was received, of which Put has said that it will never be there", id)
		case !p.never && !p.unknown && len(all) == 0:
			st.w.fail("message %d is lost", id)
		}
		st.again(id, all)
		if len(all) == 0 {
			continue
		}
		if p.unknown {
			p.returned = math.MaxInt64
		}
		if st.way == takeInOrder || st.way == chanOfOne {
			st.h.note(p.client, enqueued{id}, p.called, p.returned)
			st.h.note(all[0].client, dequeued{id}, all[0].called, all[0].at)
		}
	}
}

// disorder finds messages that were taken in another order than they were put
// in. If each message of a queue is taken once, and none before it was put, its
// history is linearizable if and only if there are no two such (Henzinger, Sezgin and
// Vafeiadis, Aspect-Oriented Linearizability Proofs, 2013).
func (st *stream) disorder() []string {
	// What a lost session had claimed is passed over until its claims are gone.
	consumer := 1 % st.w.plan.managers
	passed := len(st.lost[consumer]) > 0 || len(st.h.broken[consumer]) > 0
	if st.way != takeInOrder && (st.way != chanOfOne || passed) {
		return nil
	}
	for b := range st.last {
		for a := range st.last {
			if len(st.received[a]) == 0 || len(st.received[b]) == 0 {
				continue
			}
			first, second := st.received[a][0], st.received[b][0]
			if st.put[a].returned < st.put[b].called && second.at < first.called {
				return []string{fmt.Sprintf("message %d was put before %d, and taken after it", a, b)}
			}
			if a == b && first.at < st.put[a].called {
				return []string{fmt.Sprintf("message %d was taken before it was put", a)}
			}
		}
	}
	return nil
}

// again looks at messages that were received more than once.
func (st *stream) again(id int, all []*receipt) {
	for i, second := range all {
		for _, first := range all[:i] {
			switch lost := first.lost || st.lostSince(first); {
			case first.acked != 0 && first.acked < second.called:
				st.w.fail("message %d was received again after it was acknowledged", id)
			case st.way != messagesWay && first.value == second.value:
				st.w.fail("message %d was received twice from one value", id)
			case lost:
			case st.way == messagesWay:
				if first.settling == 0 || first.settling > second.at {
					st.w.fail("message %d was received while another was at work on it", id)
				}
			default:
				st.w.fail("message %d was received twice", id)
			}
		}
	}
}

// lostSince says whether a session by which a message was received may have been
// lost before its removal.
func (st *stream) lostSince(r *receipt) bool {
	if st.way == takeInOrder || st.way == takeOrGiveUp {
		return false // nothing depends on it
	}
	return slices.ContainsFunc(st.lost[r.manager], func(at int64) bool { return at > r.called }) || len(st.h.broken[r.manager]) > 0
}
