package zksync_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
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
	return bounds.Size(800, 1_600)
}

const stormProducers, stormConsumers = 8, 8

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
	// The order znode stays for the next consumer.
	left, _ := st.srv.Children(queuePath + "/zksync-claims")
	if len(left) > 1 || len(left) == 1 && !strings.HasPrefix(left[0], "order-") {
		st.t.Errorf("in zksync-claims is left %v", left)
	}
	if left, _ := st.srv.Children(queuePath + "/zksync-consumers"); len(left) > 0 {
		st.t.Errorf("in zksync-consumers is left %v", left)
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

// Each message comes exactly once while connections drop and answers get lost.
func TestQueueStorm(t *testing.T) {
	stormSeeds(t, func(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
		st := &queueStorm{t: t, srv: srv, rng: rng, ledger: newLedger(t, stormMessages()), ways: allWays()}
		st.strike = func() { loseAnswers(srv, rng) }
		st.run()
		st.ledger.check(true)
	})
}

// Each message comes at least once and is acknowledged once while sessions expire and consumers die in the middle of
// their work.
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

// One consumer whose sessions expire gets each message once, and the messages of each producer in order.
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
