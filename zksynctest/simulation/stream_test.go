package simulation_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// The events of a queue.
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

// A stream is the history of one queue.
type stream struct {
	w        *world
	kind     kindOfQueue
	way      int
	path     string
	h        *history
	users    []*queueUser // by client
	capacity int          // 0 is none
	stirred  atomic.Int64 // when something has happened last
	last     *queueUser   // the last consumer, see leaveOne

	mu                   sync.Mutex
	ids                  int
	consumers, producers map[*time.Time]bool // that wait, since when
	put                  map[int]*putting
	received             map[int][]*receipt
	lost                 map[int][]time.Time // when a Manager has lost a session
	over                 bool                // nothing is received any more
}

// A putting is a message of a Put, with the state of that Put.
type putting struct {
	client           int
	called, returned int64
	unknown, never   bool
	rank             int64     // the smaller rank comes first
	due              time.Time // not before
}

// A receipt is a message that somebody was given.
type receipt struct {
	client, manager int
	value           *queueValue
	way             int // takeOrGiveUp, takeUnknown, chanOfMany or messagesWay
	called, at      int64
	when            time.Time
	settling        int64 // when it was acknowledged or given back, 0 if it was not
	acked           int64 // when that was answered, 0 if it was not
	lost            bool  // or that it is not ours any more
}

// receive notes a message.
func (st *stream) receive(c *simClient, v *queueValue, way int, data []byte, called int64) (*receipt, int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	at := st.h.clock.Add(1)
	id, err := strconv.Atoi(string(data))
	if err != nil || st.put[id] == nil {
		st.w.fail("received %q, which nobody has put", data)
		return &receipt{}, 0
	}
	st.w.say("client %d has received %d", c.number, id)
	r := &receipt{client: c.number, manager: c.manager, value: v, way: way, called: called, at: at, when: time.Now()}
	switch {
	case way == takeOrGiveUp:
		r.settling, r.acked = at, at // it is removed already
	case way == takeUnknown:
		r.settling = at
	case v.closing:
		r.settling = at
	}
	st.received[id] = append(st.received[id], r)
	if due := st.put[id].due; r.when.Before(due) {
		st.w.fail("message %d was received %v too early", id, due.Sub(r.when))
	}
	return r, id
}

// before reports whether a message must come before another, if grain adjacent ranks
// may be mixed.
func (st *stream) before(a, b int, grain int64) bool {
	p, q := st.put[a], st.put[b]
	if p.rank != q.rank {
		return p.rank/grain < q.rank/grain
	}
	return p.returned < q.called || p.called == q.called && a < b
}

// inOrder checks messages that one got after the other, when nobody else was
// there and nothing was put any more.
func (st *stream) inOrder(who string, all []int, grain int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, later := range all {
		for _, first := range all[:i] {
			if st.before(later, first, grain) {
				st.w.fail("%s got message %d before %d", who, first, later)
				return
			}
		}
	}
}

// settle checks the deliveries of all messages.
func (st *stream) settle() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for id := range st.ids {
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
	// Consumers skip the messages that a lost session had claimed until its claims
	// are deleted.
	consumer := 1 % st.w.plan.managers
	passed := len(st.lost[consumer]) > 0 || len(st.h.broken[consumer]) > 0
	if st.way != takeInOrder && (st.way != chanOfOne || passed) {
		return nil
	}
	for b := range st.ids {
		for a := range st.ids {
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
		if st.doomed(second) || second.way == takeUnknown {
			continue
		}
		for _, first := range all[:i] {
			if first.way == takeUnknown {
				continue // the removal may have failed
			}
			switch lost := first.lost || st.lostSince(first); {
			case first.acked != 0 && first.acked < second.called:
				st.w.fail("message %d was received again after it was acknowledged", id)
			case first.way != messagesWay && first.value == second.value:
				st.w.fail("message %d was received twice from one value", id)
			case first.way == takeOrGiveUp:
				st.w.fail("message %d was received again after it was taken", id)
			case lost:
			case first.way == messagesWay:
				if first.settling == 0 || first.settling > second.at {
					st.w.fail("message %d was received while another was at work on it", id)
				}
			default:
				st.w.fail("message %d was received twice", id)
			}
		}
	}
}

// doomed says whether a message came by a session that had been ended by force,
// though its Manager did not know yet: others may have had the message by then.
func (st *stream) doomed(r *receipt) bool {
	st.h.mu.Lock()
	defer st.h.mu.Unlock()
	return r.way != takeOrGiveUp && slices.ContainsFunc(st.h.broken[r.manager], func(b *[2]int64) bool { return b[0] < r.at && b[1] > r.called })
}

// lostSince says whether the session by which a message was received has been
// lost since.
func (st *stream) lostSince(r *receipt) bool {
	return slices.ContainsFunc(st.lost[r.manager], func(at time.Time) bool { return !at.Before(r.when) })
}

// note records messages that are about to be put.
func (st *stream) note(client, n int, rank int64, due time.Time) (all []*putting, data [][]byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	called := st.h.clock.Add(1)
	for range n {
		p := &putting{client: client, called: called, returned: math.MaxInt64, unknown: true, rank: rank, due: due}
		st.put[st.ids] = p
		all, data = append(all, p), append(data, []byte(strconv.Itoa(st.ids)))
		st.ids++
	}
	return all, data
}
