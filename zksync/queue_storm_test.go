package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// stormMessages is how many messages go through a storm: 20,000 where
// ZKSYNC_STORM_RUNS is set.
func stormMessages() int {
	if os.Getenv("ZKSYNC_STORM_RUNS") != "" {
		return 20_000
	}
	return 1_600
}

const stormProducers, stormConsumers = 8, 8

// A ledger keeps account of the messages of a storm.
type ledger struct {
	t     testing.TB
	each  int           // messages of a producer
	pause time.Duration // that a producer makes at most between two batches

	unsettled bool // do not look at what is settled: those who received it cannot know

	mu        sync.Mutex
	delivered map[string]int
	settled   map[string]int // acknowledged, or taken for good
	unsure    map[string]int // whoever did so has not learned what came of it
}

func newLedger(t testing.TB, messages int) *ledger {
	return &ledger{
		t: t, each: messages / stormProducers, pause: 2 * time.Second,
		delivered: make(map[string]int), settled: make(map[string]int), unsure: make(map[string]int),
	}
}

func (l *ledger) note(where map[string]int, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	where[string(data)]++
}

// produce puts the messages of one producer, one by one or many together.
func (l *ledger) produce(ctx context.Context, q *zksync.Queue, producer int, rnd *rand.Rand) {
	for i := 0; i < l.each; {
		n := min(1+rnd.IntN(20), l.each-i)
		var err error
		if n == 1 {
			err = q.Put(ctx, message(producer, i))
		} else {
			var all [][]byte
			for j := range n {
				all = append(all, message(producer, i+j))
			}
			err = q.PutAll(ctx, all...)
		}
		if err != nil {
			l.t.Errorf("producer %d: %v", producer, err)
			return
		}
		i += n
		time.Sleep(time.Duration(rnd.Int64N(int64(l.pause))))
	}
}

func message(producer, i int) []byte { return fmt.Appendf(nil, "%d.%06d", producer, i) }

// check looks whether every message was delivered, and was settled once. Once is
// whether it must have been delivered once, too.
func (l *ledger) check(once bool) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	again, wrong := 0, 0
	for p := range stormProducers {
		for i := range l.each {
			v := string(message(p, i))
			d, s, u := l.delivered[v], l.settled[v], l.unsure[v]
			if d > 1 {
				again++
			}
			settledWrongly := !l.unsettled && (s > 1 || s == 0 && u == 0)
			if d < 1 || settledWrongly || once && (d != 1 || s != 1) {
				if wrong++; wrong <= 10 {
					l.t.Errorf("message %s was delivered %d times and settled %d times, with %d attempts whose outcome is not known", v, d, s, u)
				}
			}
		}
	}
	if n := len(l.delivered); n != stormProducers*l.each {
		l.t.Errorf("%d messages were delivered, want %d", n, stormProducers*l.each)
	}
	l.t.Logf("%d messages, %d delivered more than once, %d wrong", len(l.delivered), again, wrong)
}

// byTake, byChan and byMessages are ways to consume until ctx ends or the
// consumer dies: they work on a message for a while.
type way func(ctx context.Context, l *ledger, q *zksync.Queue, rnd *rand.Rand)

func byTake(ctx context.Context, l *ledger, q *zksync.Queue, _ *rand.Rand) {
	for {
		data, err := q.Take(ctx)
		if err != nil {
			if ctx.Err() == nil {
				l.t.Error("Take:", err)
			}
			return
		}
		l.note(l.delivered, data)
		l.note(l.settled, data)
	}
}

func byChan(ctx context.Context, l *ledger, q *zksync.Queue, rnd *rand.Rand) {
	seen := make(map[string]bool)
	for {
		select {
		case data, ok := <-q.Chan():
			if !ok {
				l.t.Error("the channel was closed:", q.Err())
				return
			}
			if seen[string(data)] {
				l.t.Errorf("message %s was delivered twice by one value", data)
			}
			seen[string(data)] = true
			l.note(l.delivered, data)
			l.note(l.settled, data)
			dawdle(rnd)
		case <-ctx.Done():
			return
		}
	}
}

func byMessages(ctx context.Context, l *ledger, q *zksync.Queue, rnd *rand.Rand) {
	for {
		select {
		case msg, ok := <-q.Messages():
			if !ok {
				l.t.Error("the channel was closed:", q.Err())
				return
			}
			l.note(l.delivered, msg.Data)
			dawdle(rnd)
			if ctx.Err() != nil {
				return // dead, in the middle of its work
			}
			err := msg.Ack(ctx)
			switch {
			case err == nil:
				l.note(l.settled, msg.Data)
			case ctx.Err() != nil:
				l.note(l.unsure, msg.Data)
				return
			case !errors.Is(err, zksync.ErrLost):
				l.t.Error("Ack:", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func dawdle(rnd *rand.Rand) {
	if rnd.IntN(10) == 0 {
		time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
	}
}

// A queueStorm has producers and consumers, each with a session of its own.
type queueStorm struct {
	t       *testing.T
	srv     *zksynctest.Server
	rng     *rand.Rand
	ledger  *ledger
	ways    []way
	strike  func() // does something bad
	crashes bool   // consumers die
}

func (st *queueStorm) run() {
	ctx, stop := context.WithCancel(st.t.Context())
	var producing, consuming, striking sync.WaitGroup
	for p := range stormProducers {
		rnd := rand.New(rand.NewPCG(st.rng.Uint64(), 3))
		q := zksync.NewQueue(st.srv.Connect(st.t), queuePath)
		producing.Go(func() {
			defer q.Close()
			st.ledger.produce(st.t.Context(), q, p, rnd)
		})
	}
	for c := range len(st.ways) {
		rnd := rand.New(rand.NewPCG(st.rng.Uint64(), 4))
		consuming.Go(func() { st.consume(ctx, st.ways[c], rnd) })
	}
	began, strikes := time.Now(), 0
	striking.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(time.Duration(st.rng.IntN(300)) * time.Millisecond)
			st.strike()
			strikes++
		}
	})
	producing.Wait()
	deadline := time.Now().Add(patience)
	for time.Sleep(time.Second); len(inQueue(st.srv, queuePath)) > 0; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			items, claims := leftItems(st.srv, queuePath)
			st.t.Errorf("after %v %d messages are left, and %d claims: %.500v", patience, len(items), len(claims), fmt.Sprint(items, claims))
			break
		}
	}
	stop()
	striking.Wait()
	st.t.Logf("%d strikes in %v", strikes, time.Since(began))
	consuming.Wait()
	time.Sleep(time.Minute)
	for _, dir := range []string{"zksync-claims", "zksync-consumers"} {
		if left, _ := st.srv.Children(queuePath + "/" + dir); len(left) > 0 {
			st.t.Errorf("in %s is left %v", dir, left)
		}
	}
}

// consume consumes until ctx ends, by one consumer after another where they die.
func (st *queueStorm) consume(ctx context.Context, how way, rnd *rand.Rand) {
	for ctx.Err() == nil {
		if !st.crashes {
			q := zksync.NewQueue(st.srv.Connect(st.t), queuePath)
			how(ctx, st.ledger, q, rnd)
			q.Close()
			return
		}
		m, die := mortalManager(st.t, st.srv)
		q := zksync.NewQueue(m, queuePath)
		life, end := context.WithTimeout(ctx, time.Duration(rnd.IntN(10_000))*time.Millisecond)
		how(life, st.ledger, q, rnd)
		end()
		if rnd.IntN(2) == 0 {
			die()
		}
		q.Close()
		m.Close()
	}
}

// lose loses requests and answers, and connections, but no sessions.
func loseAnswers(srv *zksynctest.Server, rng *rand.Rand) {
	live := srv.Sessions()
	if len(live) == 0 {
		return
	}
	id := live[rng.IntN(len(live))].ID
	if rng.IntN(3) == 0 {
		srv.Disconnect(id)
		return
	}
	f := zksynctest.Fault{
		Session: id, Nth: rng.IntN(4),
		At: []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch}[rng.IntN(4)],
		Do: []zksynctest.Action{zksynctest.Disconnect, zksynctest.Delay(time.Duration(rng.IntN(500)) * time.Millisecond)}[rng.IntN(2)],
	}
	if f.At != zksynctest.OnWatch && rng.IntN(2) == 0 {
		f.Op = zkserver.OpMulti
	}
	srv.Inject(f)
}

// stormSeeds runs a storm for each seed, in a bubble.
func stormSeeds(t *testing.T, run func(t *testing.T, srv *zksynctest.Server, rng *rand.Rand)) {
	for seed := range stormRuns(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) { run(t, srv, rand.New(rand.NewPCG(uint64(seed), 5))) })
		})
	}
}

func allWays() []way {
	return []way{byChan, byMessages, byTake, byChan, byMessages, byTake, byChan, byMessages}
}

// TestQueueStorm drops connections and loses answers: each message comes exactly once.
func TestQueueStorm(t *testing.T) {
	stormSeeds(t, func(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
		st := &queueStorm{t: t, srv: srv, rng: rng, ledger: newLedger(t, stormMessages()), ways: allWays()}
		st.strike = func() { loseAnswers(srv, rng) }
		st.run()
		st.ledger.check(true)
	})
}

// TestQueueStormWithCrashes expires sessions, too, and has consumers die in the
// middle of their work: each message comes at least once, and is acknowledged once.
func TestQueueStormWithCrashes(t *testing.T) {
	stormSeeds(t, func(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
		st := &queueStorm{t: t, srv: srv, rng: rng, ledger: newLedger(t, stormMessages()), crashes: true}
		for range stormConsumers {
			st.ways = append(st.ways, byMessages)
		}
		unreachable := make(map[int64]time.Time)
		st.strike = func() {
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
			strike(srv, &witness{}, rng, unreachable)
		}
		st.run()
		st.ledger.check(false)
	})
}

// TestQueueStormInOrder has one consumer, whose sessions expire, too: it gets each
// message once, and those of each producer in order.
func TestQueueStormInOrder(t *testing.T) {
	stormSeeds(t, func(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
		st := &queueStorm{t: t, srv: srv, rng: rng, ledger: newLedger(t, stormMessages())}
		newest := make(map[string]string)
		st.ways = []way{func(ctx context.Context, l *ledger, q *zksync.Queue, rnd *rand.Rand) {
			for {
				select {
				case data, ok := <-q.Chan():
					if !ok {
						t.Error("the channel was closed:", q.Err())
						return
					}
					l.note(l.delivered, data)
					l.note(l.settled, data)
					producer, _, _ := strings.Cut(string(data), ".")
					if string(data) <= newest[producer] {
						t.Errorf("%s came after %s", data, newest[producer])
					}
					newest[producer] = string(data)
					dawdle(rnd)
				case <-ctx.Done():
					return
				}
			}
		}}
		unreachable := make(map[int64]time.Time)
		st.strike = func() {
			time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
			strike(srv, &witness{}, rng, unreachable)
		}
		st.run()
		st.ledger.check(true)
	})
}
