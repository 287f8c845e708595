package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// A ledger keeps account of the messages of a storm.
type ledger struct {
	t     testing.TB
	each  int           // messages of a producer
	pause time.Duration // that a producer makes at most between two batches

	unsettled bool // do not check settled messages: their receivers cannot know

	mu        sync.Mutex
	delivered map[string]int
	settled   map[string]int // acknowledged, or taken for good
	unsure    map[string]int // an Ack or Take with an unknown outcome
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

// check checks that every message was delivered, and was settled once. If once is true,
// every message must also have been delivered once.
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
