package simulation_test

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// anyQueue has the common methods of Queue, PriorityQueue and DelayQueue.
type anyQueue interface {
	Take(ctx context.Context) ([]byte, error)
	TryTake(ctx context.Context) ([]byte, bool, error)
	Chan() <-chan []byte
	Messages() <-chan *zksync.Message
	Err() error
	Close() error
}

// A kindOfQueue is one of the three kinds. ready prepares a PutAll for an action, and returns the
// rank of the messages and their due time.
type kindOfQueue struct {
	name  string
	grain int64 // number of adjacent ranks that may be mixed, by consumers that have listed some of them before
	open  func(u *queueUser, prefetch zksync.PrefetchOption) anyQueue
	ready func(v *queueValue, a action) (rank int64, due time.Time, put func(ctx context.Context, data [][]byte) error)
}

type putAll = func(ctx context.Context, data [][]byte) error

// kindsOfQueues has the kinds, repeated according to their frequency, the plain kind first.
var kindsOfQueues = []kindOfQueue{plainQueue, plainQueue, plainQueue, priorityQueue, delayQueue}

var plainQueue = kindOfQueue{
	name: "Queue", grain: 1,
	open: func(u *queueUser, prefetch zksync.PrefetchOption) anyQueue {
		opts := []zksync.QueueOption{prefetch}
		if u.capacity > 0 {
			opts = append(opts, zksync.WithCapacity(u.capacity))
		}
		return zksync.NewQueue(u.m, u.st.path, opts...)
	},
	ready: func(v *queueValue, _ action) (int64, time.Time, putAll) {
		q := v.anyQueue.(*zksync.Queue)
		return 0, time.Time{}, func(ctx context.Context, data [][]byte) error {
			if len(data) == 1 {
				return q.Put(ctx, data[0])
			}
			return q.PutAll(ctx, data...)
		}
	},
}

var priorityQueue = kindOfQueue{
	name: "PriorityQueue", grain: 1,
	open: func(u *queueUser, prefetch zksync.PrefetchOption) anyQueue {
		return zksync.NewPriorityQueue(u.m, u.st.path, prefetch)
	},
	ready: func(v *queueValue, a action) (int64, time.Time, putAll) {
		q, priority := v.anyQueue.(*zksync.PriorityQueue), 3-a.units
		return int64(priority), time.Time{}, func(ctx context.Context, data [][]byte) error {
			return q.PutAll(ctx, priority, data...)
		}
	},
}

var delayQueue = kindOfQueue{
	name: "DelayQueue", grain: (10 * time.Second).Milliseconds(),
	open: func(u *queueUser, prefetch zksync.PrefetchOption) anyQueue {
		return zksync.NewDelayQueue(u.m, u.st.path, prefetch)
	},
	ready: func(v *queueValue, a action) (int64, time.Time, putAll) {
		q, delay := v.anyQueue.(*zksync.DelayQueue), a.stay/2
		due := time.Now().Add(delay)
		return due.Add(time.Millisecond - 1).UnixMilli(), due, func(ctx context.Context, data [][]byte) error {
			return q.PutAll(ctx, delay, data...)
		}
	},
}

// A queueValue is one value of the queue. closing and spare are guarded by the stream.
type queueValue struct {
	anyQueue
	closing bool
	spare   int // number of messages that may be kept without an Ack or a Nack, so that others still arrive
}

// A queueUser has a value of the queue, and a new value after the old one is closed.
type queueUser struct {
	st       *stream
	m        *session.Manager
	way      int
	consumes bool
	capacity int // 0 for no capacity
	prefetch int // 0 for the default

	mu sync.Mutex
	v  *queueValue
}

func (u *queueUser) open() *queueValue {
	prefetch := cmp.Or(u.prefetch, 128)
	v := &queueValue{anyQueue: u.st.kind.open(u, zksync.WithPrefetch(prefetch)), spare: prefetch - 1}
	if u.st.w.plan.setting.fewClaims {
		v.spare = 0
	}
	return v
}

func (u *queueUser) value() *queueValue {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.v
}

// renew closes the value, even if other clients use it, and opens a new value.
func (u *queueUser) renew() {
	u.mu.Lock()
	v := u.v
	u.v = u.open()
	u.mu.Unlock()
	u.st.close(v)
}

// close closes a value. The messages that were received from it and not settled are no longer
// claimed by this value.
func (st *stream) close(v *queueValue) {
	st.mu.Lock()
	v.closing = true
	at := st.h.clock.Add(1)
	for _, all := range st.received {
		for _, r := range all {
			if r.value == v && r.settling == 0 {
				r.settling = at
			}
		}
	}
	st.mu.Unlock()
	st.w.say("a value is being closed")
	v.Close()
	st.stir()
	st.w.say("it is closed")
}

// leaveOne lets one consumer get all messages after all other consumers are closed: first the
// messages that it has already claimed, and then all others, in order and at once. Afterwards only
// the messages that it has received and not settled are left.
func (st *stream) leaveOne(feeder *queueUser) {
	st.close(feeder.v)
	for _, u := range st.distinct() {
		if u != st.last {
			st.close(u.value())
		}
	}
	time.Sleep(st.w.plan.timeout())
	if st.w.refused(st.last.value().Err()) {
		st.last.renew()
	}
	v := st.last.value()
	ahead := st.claims(st.last.way != takeOrGiveUp)
	c := &simClient{w: st.w, number: len(st.w.plan.clients) + len(st.w.helpers), m: st.last.m}
	c.manager = slices.Index(st.w.managers, st.last.m)
	got := st.getAll(c, v, st.last.way)
	st.inOrder("who was left", got[min(ahead, len(got)):], st.kind.grain)
	open := map[int]bool{}
	st.mu.Lock()
	for id, all := range st.received {
		for _, r := range all {
			open[id] = open[id] || r.value == v && r.settling == 0 && r.way == messagesWay
		}
	}
	st.mu.Unlock()
	st.close(v)

	q := &queueUser{st: st, m: st.w.managers[0]}
	v = q.open()
	c.manager = 0
	got = st.getAll(c, v, takeOrGiveUp)
	st.inOrder("who came last", got, 1)
	for _, id := range got {
		if !open[id] {
			st.w.fail("message %d was not to be had by who was left", id)
		}
	}
	st.close(v)
	st.mu.Lock()
	st.over = true
	st.mu.Unlock()
}

// distinct returns the users with distinct values.
func (st *stream) distinct() []*queueUser {
	var all []*queueUser
	for _, u := range st.users {
		if !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all
}

// ledgerRange matches the numbers of consecutive messages in the data of a ledger.
var ledgerRange = regexp.MustCompile(`:(\d+)(?:-(\d+))?`)

// claims returns the number of claims. All claims must belong to one value, and there must be no
// claims if the remaining value makes none.
func (st *stream) claims(may bool) (n int) {
	holders := 0
	for _, name := range st.ledgers() {
		data, _ := st.w.srv.Get(st.claimsDir() + "/" + name)
		if len(data) == 0 {
			continue
		}
		holders++
		for _, names := range ledgerRange.FindAllSubmatch(data, -1) {
			first, _ := strconv.Atoi(string(names[1]))
			last, err := strconv.Atoi(string(names[2]))
			if err != nil {
				last = first
			}
			n += last - first + 1
		}
	}
	if holders > 1 || holders == 1 && !may {
		st.w.fail("%d ledgers have claims, where one value is left", holders)
	}
	return n
}

func (st *stream) claimsDir() string { return st.path + "/zksync-claims" }

// ledgers returns the names of the ledgers. The directory must have nothing else, except one order
// znode.
func (st *stream) ledgers() (all []string) {
	names, _ := st.w.srv.Children(st.claimsDir())
	orders := 0
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "ledger-"):
			all = append(all, name)
		case strings.HasPrefix(name, "order-"):
			orders++
		default:
			st.w.fail("left behind in %s: %s", st.claimsDir(), name)
		}
	}
	if orders > 1 {
		st.w.fail("there are %d order znodes: %v", orders, names)
	}
	return all
}

// checkLedgers checks that all values have deleted their ledgers.
func (st *stream) checkLedgers() {
	if left := st.ledgers(); len(left) > 0 {
		st.w.fail("left behind in %s: %v", st.claimsDir(), left)
	}
}

// getAll receives all messages that are available at once.
func (st *stream) getAll(c *simClient, v *queueValue, way int) (got []int) {
	// A consumer may find out one after another that listed messages are gone, in two round trips each.
	patience := st.w.plan.timeout()/2 + 100*slices.Max(st.w.plan.distance)
	for {
		called := st.h.clock.Add(1)
		var data []byte
		var m *zksync.Message
		ok := false
		switch way {
		case takeOrGiveUp:
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			var err error
			if data, ok, err = v.TryTake(ctx); err != nil {
				st.w.fail("what is left cannot be taken: %v", err)
			}
			cancel()
		case chanOfMany:
			select {
			case data, ok = <-v.Chan():
			case <-time.After(patience):
			}
		case messagesWay:
			select {
			case m, ok = <-v.Messages():
			case <-time.After(patience):
			}
		}
		if !ok {
			return got
		}
		if m != nil {
			data = m.Data
		}
		r, id := st.receive(c, v, way, data, called)
		got = append(got, id)
		if m == nil {
			continue
		}
		if err := m.Ack(context.Background()); err != nil {
			st.w.fail("what is left cannot be acknowledged: %v", err)
		}
		st.mu.Lock()
		r.settling = st.h.clock.Add(1)
		r.acked = r.settling
		st.mu.Unlock()
	}
}
