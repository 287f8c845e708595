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

// An account is of the messages of one value that many goroutines use.
type account struct {
	mu                     sync.Mutex
	put, gone, left, maybe map[string]int
}

func (a *account) note(where map[string]int, data string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	where[data]++
}

// Close during any use of the value and with lost answers loses no message. All calls return, and each message is
// removed once, or left in the queue, where nothing keeps it from the next consumer while the session lives on.
func TestCloseInAStorm(t *testing.T) {
	for seed := range stormRuns(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			for round := range 20 {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					closeInAStorm(t, srv, rand.New(rand.NewPCG(uint64(seed), uint64(round))))
				})
			}
		})
	}
}

func closeInAStorm(t *testing.T, srv *zksynctest.Server, rng *rand.Rand) {
	a := &account{put: make(map[string]int), gone: make(map[string]int), left: make(map[string]int), maybe: make(map[string]int)}
	m := srv.Connect(t)
	q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1+rng.IntN(10)))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	// again does something over and over, with a ctx that ends soon, as long as the
	// value is open.
	again := func(do func(ctx context.Context, rnd *rand.Rand) error) {
		rnd := rand.New(rand.NewPCG(rng.Uint64(), 13))
		wg.Go(func() {
			for {
				some, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(400))*time.Millisecond)
				err := do(some, rnd)
				ended := some.Err() != nil
				cancel()
				switch {
				case errors.Is(err, zksync.ErrQueueClosed):
					return
				case err != nil && !ended && !errors.Is(err, zksync.ErrLost):
					t.Error(err)
				}
				time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
			}
		})
	}
	for p := range 3 {
		i := 0
		again(func(ctx context.Context, _ *rand.Rand) error {
			data := message(p, i)
			i++
			err := q.Put(ctx, data)
			if err == nil {
				a.note(a.put, string(data))
			}
			return err
		})
	}
	for i := range 3 {
		again(func(ctx context.Context, _ *rand.Rand) error {
			take := q.Take
			if i == 0 {
				take = func(ctx context.Context) ([]byte, error) {
					data, ok, err := q.TryTake(ctx)
					if err == nil && !ok {
						err = context.Cause(ctx)
						data = nil
					}
					return data, err
				}
			}
			data, err := take(ctx)
			switch {
			case data == nil:
			case err == nil:
				a.note(a.gone, string(data))
			case errors.Is(err, zksync.ErrOutcomeUnknown):
				a.note(a.maybe, string(data))
			}
			return err
		})
	}
	again(func(ctx context.Context, _ *rand.Rand) error {
		_, err := q.Len(ctx)
		if err == nil {
			_, _, err = q.Peek(ctx)
		}
		return err
	})
	settling := rand.New(rand.NewPCG(rng.Uint64(), 14))
	wg.Go(func() {
		for msg := range q.Messages() {
			how, pause := settling.IntN(4), time.Duration(settling.IntN(200))*time.Millisecond
			wg.Go(func() {
				time.Sleep(pause)
				var err error
				switch how {
				case 0:
					err = msg.Nack(t.Context())
				case 1: // never
				default:
					if err = msg.Ack(t.Context()); err == nil {
						a.note(a.gone, string(msg.Data))
					} else if errors.Is(err, zksync.ErrOutcomeUnknown) {
						a.note(a.maybe, string(msg.Data))
					}
				}
				if err != nil && !errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrOutcomeUnknown) {
					t.Error(err)
				}
			})
		}
	})
	for range rng.IntN(30) {
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		loseAnswers(srv, rng)
	}
	for range 2 {
		wg.Go(func() { closeQueue(t, q) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("something has not returned")
	}
	stop()
	<-done
	// Where the connection was away for longer than Close waits, the rest is done when
	// there is another.
	time.Sleep(time.Minute)
	rest := newQueue(t, srv)
	for {
		data, ok, err := rest.TryTake(t.Context())
		if err != nil {
			t.Fatal("TryTake:", err)
		}
		if !ok {
			break
		}
		a.note(a.left, string(data))
	}
	closeQueue(t, rest)
	wantLeft(t, srv, 0, 0)
	t.Logf("%d put, %d removed, %d left", len(a.put), len(a.gone), len(a.left))
	for v := range a.put {
		if gone, left, maybe := a.gone[v], a.left[v], a.maybe[v]; gone+left != 1 && (maybe == 0 || gone+left > 1) {
			t.Errorf("message %s was removed %d times, with %d attempts of which it is not known, and left %d times", v, gone, maybe, left)
		}
	}
}
