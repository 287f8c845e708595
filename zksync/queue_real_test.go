package zksync_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Each message comes exactly once on a real ensemble whose servers are killed one after the other, the leader included.
func TestRealQueueStorm(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 3)
	l := newLedger(t, stormMessages())
	l.pause = time.Second // so that all three strike while they produce
	sessions := make(map[*session.Manager]int64)
	connect := func() *session.Manager {
		m := e.Connect(t, session.WithTimeout(20*time.Second))
		sessions[m] = live(t, m).ID()
		return m
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var producing, consuming sync.WaitGroup
	for p := range stormProducers {
		q := zksync.NewQueue(connect(), queuePath)
		rnd := rand.New(rand.NewPCG(uint64(p), 6))
		producing.Go(func() {
			defer q.Close()
			l.produce(t.Context(), q, p, rnd)
		})
	}
	for c, how := range allWays() {
		q := zksync.NewQueue(connect(), queuePath)
		rnd := rand.New(rand.NewPCG(uint64(c), 7))
		consuming.Go(func() {
			defer q.Close()
			how(ctx, l, q, rnd)
		})
	}
	for i := range 3 {
		victim := e.Followers()[0]
		if i == 1 {
			victim = e.Leader()
		}
		e.Kill(victim)
		time.Sleep(time.Second)
		e.Start(victim)
		e.WaitReady()
	}
	producing.Wait()
	s := live(t, e.Connect(t))
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		names, _, changed, err := s.ChildrenW(wait, queuePath)
		if err != nil {
			t.Fatal("the queue has not emptied:", err)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "qn-") }) {
			break
		}
		<-changed
	}
	stop()
	consuming.Wait()
	// A server that is killed takes no session with it, since the others have them;
	// but on a machine that is slow enough one may run out of time.
	once := true
	for m, id := range sessions {
		if live(t, m).ID() != id {
			t.Log("a session was lost")
			once = false
		}
	}
	l.unsettled = !once
	l.check(once)
}
