package zksync_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

var (
	lifecycles = flag.Int("lifecycles", bounds.Size(60, 200), "how many seeds TestLifecycles tries")
	churnFor   = flag.Duration("churn", bounds.Size(time.Second, 3*time.Second), "how long TestChurn opens, uses and closes")
)

// A life is a use of one part: it returns when it has released everything. closePart,
// if not nil, may be called at any time, and more than once.
type life struct {
	name      string
	use       func(ctx context.Context) error
	closePart func() error
}

// lives are all primitives, each ready for one use.
func lives(m *session.Manager) []life {
	mu := zksync.NewMutex(m, "/life/lock")
	lingering := zksync.NewMutex(m, "/life/lock", zksync.WithLinger(time.Second))
	rw := zksync.NewRWMutex(m, "/life/rwlock")
	sem := zksync.NewSemaphore(m, "/life/semaphore", 2)
	election := zksync.NewElection(m, "/life/election")
	gate := zksync.NewBarrier(m, "/life/gate")
	double := zksync.NewDoubleBarrier(m, "/life/double", 2)
	group := zksync.NewGroup(m, "/life/group")
	queue := zksync.NewQueue(m, "/life/queue")
	ranged := zksync.NewQueue(m, "/life/queue")
	acknowledged := zksync.NewQueue(m, "/life/queue")
	work := func(ctx context.Context) error {
		select {
		case <-time.After(50 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return []life{
		{name: "mutex", use: func(ctx context.Context) error { return mu.Do(ctx, work) }},
		{name: "lingering mutex", use: func(ctx context.Context) error { return lingering.Do(ctx, work) }},
		{name: "writer", use: func(ctx context.Context) error { return rw.Do(ctx, work) }},
		{name: "reader", use: func(ctx context.Context) error { return rw.RDo(ctx, work) }},
		{name: "semaphore", use: func(ctx context.Context) error { return sem.Do(ctx, 1, work) }},
		{name: "election", use: func(ctx context.Context) error { return election.Run(ctx, work) }},
		{name: "candidate", use: func(ctx context.Context) error {
			_, err := election.Campaign(ctx)
			return err
		}, closePart: election.Resign},
		{name: "barrier", use: func(ctx context.Context) error {
			return errors.Join(gate.Set(ctx), gate.Remove(ctx), gate.Wait(ctx))
		}},
		{name: "double barrier", use: func(ctx context.Context) error { return double.Do(ctx, work) }},
		{name: "member", use: func(ctx context.Context) error {
			member, err := group.Join(ctx, fmt.Sprintf("id-%d", rand.Int()), nil)
			if err != nil {
				return err
			}
			return errors.Join(work(ctx), member.Leave())
		}},
		{name: "members", use: func(ctx context.Context) error {
			for range group.Watch(ctx).Events() {
			}
			return nil
		}},
		{name: "observer", use: func(ctx context.Context) error {
			for range election.Observe(ctx).Events() {
			}
			return nil
		}},
		{name: "tree", use: func(ctx context.Context) error {
			for range watch.Tree(ctx, m, "/life").Events() {
			}
			return nil
		}},
		{name: "states", use: func(ctx context.Context) error {
			for range m.States(ctx) {
			}
			return nil
		}},
		{name: "producer", use: func(ctx context.Context) error {
			return queue.PutAll(ctx, []byte("a"), []byte("b"), []byte("c"))
		}, closePart: queue.Close},
		{name: "taker", use: func(ctx context.Context) error {
			_, err := queue.Take(ctx)
			return err
		}, closePart: queue.Close},
		{name: "range over a queue", use: func(ctx context.Context) error {
			stop := context.AfterFunc(ctx, func() { ranged.Close() })
			defer stop()
			for range ranged.Chan() {
			}
			return ranged.Err()
		}, closePart: ranged.Close},
		{name: "acknowledged messages", use: func(ctx context.Context) error {
			for {
				select {
				case msg, ok := <-acknowledged.Messages():
					if !ok {
						return acknowledged.Err()
					}
					if err := msg.Ack(ctx); err != nil {
						return err
					}
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}, closePart: acknowledged.Close},
	}
}

// Every call returns and no goroutine runs on, even if values are opened, used and closed in random order and at
// random times. A call that does not return is a deadlock in the bubble; a goroutine that is left keeps it from
// ending.
func TestLifecycles(t *testing.T) {
	for seed := range *lifecycles {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				lifecycle(t, srv, rand.New(rand.NewPCG(uint64(seed), 3)))
			})
		})
	}
}

func lifecycle(t *testing.T, srv *zksynctest.Server, r *rand.Rand) {
	at := func(low, high time.Duration) time.Duration { return low + time.Duration(r.Int64N(int64(high-low))) }
	var wg sync.WaitGroup
	for range 1 + r.IntN(3) {
		m := srv.Connect(t)
		end := at(0, 5*time.Second) // of the Manager
		for _, l := range lives(m) {
			if r.IntN(3) == 0 {
				continue
			}
			start, limit := at(0, 6*time.Second), at(1, 4*time.Second) // some begin after the end
			wg.Go(func() {
				time.Sleep(start)
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := l.use(ctx)
				if late := time.Since(began(ctx, limit)) - limit; late > 15*time.Second {
					t.Errorf("%s returned %v after its ctx had ended", l.name, late)
				}
				if start > end && err == nil && l.name != "observer" && l.name != "members" && l.name != "states" && l.name != "tree" {
					t.Errorf("%s went well %v after its Manager was closed", l.name, start-end)
				}
			})
			if l.closePart != nil {
				for range r.IntN(3) {
					when := at(0, 7*time.Second)
					wg.Go(func() {
						time.Sleep(when)
						l.closePart() // some find nothing to close
					})
				}
			}
		}
		for range 1 + r.IntN(2) {
			wg.Go(func() {
				time.Sleep(end)
				m.Close()
			})
		}
	}
	for range r.IntN(4) {
		time.Sleep(at(0, 2*time.Second))
		for _, s := range srv.Sessions() {
			switch r.IntN(4) {
			case 0:
				srv.Disconnect(s.ID)
			case 1:
				srv.ExpireSession(s.ID)
			case 2:
				srv.Partition(s.ID)
				id := s.ID
				time.AfterFunc(at(0, 3*time.Second), func() { srv.Heal(id) })
			}
		}
	}
	wg.Wait()
	synctest.Wait()
}

// began is when ctx was given its limit.
func began(ctx context.Context, limit time.Duration) time.Time {
	deadline, _ := ctx.Deadline()
	return deadline.Add(-limit)
}

// Opening, using and closing over and over leaves the heap and the number of
// goroutines where they were.
func TestChurn(t *testing.T) {
	srv := zksynctest.Start(t)
	r := rand.New(rand.NewPCG(1, 4))
	type level struct {
		heap       uint64
		goroutines int
	}
	var levels []level
	rounds := 0
	for began := time.Now(); time.Since(began) < *churnFor || len(levels) < 8; {
		for range 20 {
			churn(t, srv, r)
			rounds++
		}
		// The markers of values that outlived their Manager; without this they are swept
		// after a day.
		const markers = "/life/queue/zksync-markers"
		names, _ := srv.Children(markers)
		for _, name := range names {
			if err := srv.Delete(markers + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
		srv.ResetOps()
		runtime.GC()
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		levels = append(levels, level{mem.HeapAlloc, runtime.NumGoroutine()})
	}
	quarter := len(levels) / 4
	early, late := levels[quarter:2*quarter], levels[len(levels)-quarter:]
	heap := func(l level) uint64 { return l.heap }
	least := func(list []level) uint64 {
		return heap(slices.MinFunc(list, func(a, b level) int { return int(int64(a.heap) - int64(b.heap)) }))
	}
	t.Logf("%d rounds: heap %d KiB in the second quarter, %d KiB in the last; goroutines %d and %d",
		rounds, least(early)>>10, least(late)>>10, early[0].goroutines, late[len(late)-1].goroutines)
	// A connection that go-zookeeper has not let go of yet has 3 MB of buffers.
	if least(late) > least(early)+least(early)/5+4<<20 {
		t.Errorf("the heap has grown from %d KiB to %d KiB", least(early)>>10, least(late)>>10)
	}
	if before, after := early[0].goroutines, late[len(late)-1].goroutines; after > before+5 {
		buf := make([]byte, 1<<20)
		t.Errorf("there were %d goroutines, and are %d:\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

// churn opens a session, uses everything for a moment, and closes it.
func churn(t *testing.T, srv *zksynctest.Server, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	m, err := session.Connect(t.Context(), "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	all := lives(m)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all[:6] {
		wg.Go(func() { l.use(ctx) }) // its result depends on the order of the calls
	}
	if r.IntN(2) == 0 {
		wg.Wait()
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
