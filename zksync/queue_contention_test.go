package zksync_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// besideBusyConsumers has n consumers, which are a request time away from the servers, claim messages all the time. They
// receive them through Chan, or give them back. Meanwhile do uses another value, which is its own time away.
func besideBusyConsumers(t *testing.T, n int, nack bool, near, far time.Duration, do func(ctx context.Context, q *zksync.Queue, first *zksync.Message) error) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 6000)
		link := srv.NewLink(t)
		q := zksync.NewQueue(link.Connect(t), queuePath, zksync.WithPrefetch(5))
		var all []*zksync.Message
		for i := range 5 {
			all = append(all, next(t, q.Messages(), fmt.Sprint(i)))
		}
		link.Delay(far / 2)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range n {
			other := srv.NewLink(t)
			busy := zksync.NewQueue(other.Connect(t), queuePath, zksync.WithPrefetch(1))
			other.Delay(near / 2)
			wg.Go(func() {
				for !nack && ctx.Err() == nil {
					select {
					case <-busy.Chan():
					case <-ctx.Done():
					}
				}
				for ctx.Err() == nil {
					select {
					case msg := <-busy.Messages():
						_ = msg.Nack(ctx)
					case <-ctx.Done():
					}
				}
				closeQueue(t, busy)
			})
		}
		time.Sleep(time.Second)
		limited, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		began := time.Now()
		if err := do(limited, q, all[0]); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("it took %v, want at most 2s: %v", time.Since(began), err)
		}
		cancel()
		wg.Wait()
		closeQueue(t, q)
	})
}

// contended are the calls that read and write the state that all consumers of a queue share.
var contended = map[string]func(ctx context.Context, q *zksync.Queue, first *zksync.Message) error{
	"Nack": func(ctx context.Context, _ *zksync.Queue, first *zksync.Message) error { return first.Nack(ctx) },
	"Retry": func(ctx context.Context, _ *zksync.Queue, first *zksync.Message) error {
		return first.Retry(ctx, time.Hour)
	},
	"Close": func(_ context.Context, q *zksync.Queue, _ *zksync.Message) error { return q.Close() },
	"Take": func(ctx context.Context, q *zksync.Queue, _ *zksync.Message) error {
		_, err := q.Take(ctx)
		return err
	},
	"TryTake": func(ctx context.Context, q *zksync.Queue, _ *zksync.Message) error {
		_, _, err := q.TryTake(ctx)
		return err
	},
}

// A Nack, Retry, Take and Close end in time beside consumers that claim messages and give them back all the time.
func TestCallsBesideBusyConsumers(t *testing.T) {
	for name, do := range contended {
		for _, n := range []int{1, 2, 6} {
			for _, nack := range []bool{false, true} {
				t.Run(fmt.Sprint(name, n, nack), func(t *testing.T) {
					besideBusyConsumers(t, n, nack, 10*time.Millisecond, 10*time.Millisecond, do)
				})
			}
		}
	}
}

// A Nack, Retry, Take and Close far from the servers end in time beside consumers that are near and claim messages all
// the time.
func TestCallsFarFromTheServersBesideBusyConsumers(t *testing.T) {
	for name, do := range contended {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				besideBusyConsumers(t, n, false, 2*time.Millisecond, 40*time.Millisecond, do)
			})
		}
	}
}

// A Take ends in time beside the only consumer of the queue, which gives its messages back again and again.
func TestTakeBesideOneBusyConsumer(t *testing.T) {
	for _, request := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			offer(t, srv.Connect(t), queuePath, 0, 100)
			near, far := srv.NewLink(t), srv.NewLink(t)
			busy := zksync.NewQueue(near.Connect(t), queuePath, zksync.WithPrefetch(1))
			q := zksync.NewQueue(far.Connect(t), queuePath)
			near.Delay(request / 2)
			far.Delay(request / 2)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for msg := range busy.Messages() {
					_ = msg.Nack(t.Context())
				}
			}()
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for range 2 {
				_, err := q.Take(ctx)
				must(t, err)
			}
			closeQueue(t, busy)
			<-stopped
			closeQueue(t, q)
		})
	}
}
