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

// harm acts like an operator that takes the znodes that begin with zksync- for
// rubbish: it removes some of them, or a whole directory.
func harm(srv *zksynctest.Server, rng *rand.Rand) {
	dir := queuePath + "/" + []string{"zksync-claims", "zksync-markers", "zksync-consumers", "zksync-limit"}[rng.IntN(4)]
	names, _ := srv.Children(dir)
	whole := rng.IntN(4) == 0
	for _, name := range names {
		if whole || rng.IntN(3) == 0 {
			srv.Delete(dir + "/" + name)
		}
	}
	if whole || len(names) == 0 {
		srv.Delete(dir)
	}
}

// An operator who deletes claims, markers and other znodes for the queue's own use loses no message and lets none be
// stuck. Meanwhile answers get lost, sessions expire, Takes are given up, and values are closed and others created.
// Put, Ack and Take return ErrOutcomeUnknown where they do not know the outcome.
func TestQueueStormWithAnOperator(t *testing.T) {
	const producers, each = 4, 200
	for seed := range stormRuns(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				rng := rand.New(rand.NewPCG(uint64(seed), 8))
				var mu sync.Mutex
				put, delivered := make(map[string]bool), make(map[string]int)
				note := func(data []byte) {
					mu.Lock()
					defer mu.Unlock()
					delivered[string(data)]++
				}
				var producing, consuming, striking sync.WaitGroup
				for p := range producers {
					q := zksync.NewQueue(srv.Connect(t), queuePath, []zksync.QueueOption{zksync.WithCapacity(50)}[:p%2]...)
					rnd := rand.New(rand.NewPCG(rng.Uint64(), 9))
					producing.Go(func() {
						defer q.Close()
						for i := range each {
							time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
							err := q.Put(t.Context(), message(p, i))
							if err == nil {
								mu.Lock()
								put[string(message(p, i))] = true
								mu.Unlock()
							} else if !errors.Is(err, zksync.ErrOutcomeUnknown) {
								t.Error("Put:", err)
							}
						}
					})
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for c := range 6 {
					m := srv.Connect(t)
					rnd := rand.New(rand.NewPCG(rng.Uint64(), 10))
					consuming.Go(func() {
						for ctx.Err() == nil {
							q := zksync.NewQueue(m, queuePath)
							shift, end := context.WithTimeout(ctx, time.Duration(rnd.IntN(10_000))*time.Millisecond)
							operated(shift, t, q, []string{"Chan", "Messages", "Take"}[c%3], rnd, note)
							end()
							closeQueue(t, q)
						}
					})
				}
				striking.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
						switch live := srv.Sessions(); {
						case rng.IntN(3) == 0:
							harm(srv, rng)
						case rng.IntN(10) == 0 && len(live) > 0:
							srv.ExpireSession(live[rng.IntN(len(live))].ID)
						default:
							loseAnswers(srv, rng)
						}
					}
				})
				producing.Wait()
				deadline := time.Now().Add(patience)
				for len(inQueue(srv, queuePath)) > 0 && time.Now().Before(deadline) {
					time.Sleep(time.Second)
				}
				stop()
				striking.Wait()
				consuming.Wait()
				time.Sleep(time.Minute)
				// Messages that a Take has put back after the other consumers had
				// ended.
				rest := newQueue(t, srv)
				for {
					data, ok, err := rest.TryTake(t.Context())
					if err != nil {
						t.Error("TryTake:", err)
					}
					if !ok {
						break
					}
					note(data)
				}
				closeQueue(t, rest)
				wantLeft(t, srv, 0, 0)
				mu.Lock()
				defer mu.Unlock()
				again := 0
				for v := range put {
					switch n := delivered[v]; {
					case n == 0:
						t.Errorf("message %s was never delivered", v)
					case n > 1:
						again++
					}
				}
				t.Logf("%d of %d messages were put for certain; %d came more than once", len(put), producers*each, again)
			})
		})
	}
}

// operated consumes in one of three ways until ctx ends, and notes the messages that
// it receives.
func operated(ctx context.Context, t *testing.T, q *zksync.Queue, how string, rnd *rand.Rand, note func([]byte)) {
	for ctx.Err() == nil {
		switch how {
		case "Take":
			patience, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(500))*time.Millisecond)
			data, err := q.Take(patience)
			cancel()
			if err == nil || errors.Is(err, zksync.ErrOutcomeUnknown) {
				note(data)
			} else if !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				t.Error("Take:", err)
			}
		case "Chan":
			select {
			case data, ok := <-q.Chan():
				if !ok {
					t.Error("Chan:", q.Err())
					return
				}
				note(data)
			case <-ctx.Done():
			}
		default:
			select {
			case msg, ok := <-q.Messages():
				if !ok {
					t.Error("Messages:", q.Err())
					return
				}
				dawdle(rnd)
				if rnd.IntN(5) == 0 {
					msg.Nack(ctx)
					continue
				}
				// An Ack whose ctx ends goes on.
				if err := msg.Ack(ctx); err == nil || errors.Is(err, zksync.ErrOutcomeUnknown) || ctx.Err() != nil {
					note(msg.Data)
				} else if !errors.Is(err, zksync.ErrLost) {
					t.Error("Ack:", err)
				}
			case <-ctx.Done():
			}
		}
	}
}
