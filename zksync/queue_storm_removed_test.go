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
	"github.com/go-zksync/toolkit/zksynctest"
)

// A message that is put after an operator deleted the whole queue is delivered, also to values that were in use during
// the deletion. The operator deletes the queue again and again, and the messages in it are gone each time.
func TestQueueStormWithRemovals(t *testing.T) {
	for seed := range stormRuns(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				rng := rand.New(rand.NewPCG(uint64(seed), 11))
				var mu sync.Mutex
				delivered := make(map[string]int)
				note := func(data []byte) {
					mu.Lock()
					defer mu.Unlock()
					delivered[string(data)]++
				}
				ctx, stop := context.WithCancel(t.Context())
				var consuming sync.WaitGroup
				for c := range 6 {
					q := zksync.NewQueue(srv.Connect(t), queuePath)
					rnd := rand.New(rand.NewPCG(rng.Uint64(), 12))
					consuming.Go(func() {
						defer closeQueue(t, q)
						operated(ctx, t, q, []string{"Chan", "Messages", "Take"}[c%3], rnd, note)
					})
				}
				producers := []*zksync.Queue{newQueue(t, srv), newQueue(t, srv, zksync.WithCapacity(10))}
				for i := range 300 {
					err := producers[i%2].Put(t.Context(), message(1, i))
					if err != nil && !errors.Is(err, zksync.ErrOutcomeUnknown) {
						t.Error("Put:", err)
					}
					switch rng.IntN(20) {
					case 0:
						removeTree(srv, queuePath)
					case 1, 2:
						loseAnswers(srv, rng)
					}
					time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
				time.Sleep(time.Minute)
				for i := range 50 {
					if err := producers[i%2].Put(t.Context(), message(2, i)); err != nil {
						t.Error("Put:", err)
					}
				}
				time.Sleep(time.Minute)
				stop()
				consuming.Wait()
				for i := range 50 {
					if v := string(message(2, i)); delivered[v] == 0 {
						t.Errorf("message %s was never delivered", v)
					}
				}
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}
