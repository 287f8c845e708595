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

// fifo returns the model of a queue. It is used only for pictures: messages that were put at the
// same time have too many possible orders for a search, and disorder finds the same errors.
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
	capacity int          // 0 for no capacity
	stirred  atomic.Int64 // time of the latest event
	last     *queueUser   // the last consumer, see leaveOne

	mu                   sync.Mutex
	ids                  int
	consumers, producers map[*time.Time]bool // that wait, with the begin of the wait
	put                  map[int]*putting
	received             map[int][]*receipt
	lost                 map[int][]time.Time // times at which a Manager has lost a session
	over                 bool                // no more messages are received
}

// A putting is a message of a Put, with the state of that Put.
type putting struct {
	client           int
	called, returned int64
	unknown, never   bool
	rank             int64     // the smaller rank comes first
	due              time.Time // earliest time of delivery
}

// A receipt is one delivery of a message to a client.
type receipt struct {
	client, manager int
	value           *queueValue
	way             int // takeOrGiveUp, takeUnknown, chanOfMany or messagesWay
	called, at      int64
	when            time.Time
	settling        int64 // when the Ack or Nack was called, 0 if it was not
	acked           int64 // when the Ack or Nack returned, 0 if it did not
	lost            bool  // or reported that the claim is lost
}

// receive records a delivery.
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
		r.settling, r.acked = at, at // Take has already removed it
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

// before reports whether message a must come before message b, if grain adjacent ranks may be
// mixed.
func (st *stream) before(a, b int, grain int64) bool {
	p, q := st.put[a], st.put[b]
	if p.rank != q.rank {
		return p.rank/grain < q.rank/grain
	}
	return p.returned < q.called || p.called == q.called && a < b
}

// inOrder checks messages that one consumer received one after the other, without other consumers
// and without further puts.
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

// disorder finds messages that were taken in another order than they were put in. If each message
// of a queue is taken once, and none before it was put, its history is linearizable if and only if
// there is no such pair (Henzinger, Sezgin and Vafeiadis, Aspect-Oriented Linearizability Proofs,
// 2013).
func (st *stream) disorder() []string {
	// Consumers skip the messages that a lost session had claimed until its claims are deleted.
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

// again checks the messages that were received more than once.
func (st *stream) again(id int, all []*receipt) {
	for i, second := range all {
		if st.doomed(second) || second.way == takeUnknown {
			continue
		}
		for _, first := range all[:i] {
			if first.way == takeUnknown {
				continue // the removal may have failed
			}
			// The servers refuse removals that exceed a quota, and removals that they answer with an internal error twice.
			refused := st.w.plan.has(quota, errBefore, errAfter, errsOfAll, errsOfWrites)
			switch lost := first.lost || st.lostSince(first) || refused; {
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

// doomed reports whether a message was received in a session that had been ended by force without
// the Manager's knowledge: other clients may have received the message by then.
func (st *stream) doomed(r *receipt) bool {
	st.h.mu.Lock()
	defer st.h.mu.Unlock()
	return r.way != takeOrGiveUp && slices.ContainsFunc(st.h.broken[r.manager], func(b *[2]int64) bool { return b[0] < r.at && b[1] > r.called })
}

// lostSince reports whether the session in which a message was received has been lost since.
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
