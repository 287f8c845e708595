package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Rounds stay whole, and Leave fails with ErrLost after a lost session, in a storm of faults. More participants than
// are needed come and go, give up, and lose connections and sessions. When the storm is over nothing is left, and
// rounds work as before.
func TestDoubleBarrierStorm(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) { barrierStorm(t, srv, uint64(seed)) })
		})
	}
}

func barrierStorm(t *testing.T, srv *zksynctest.Server, seed uint64) {
	const size, comers = 3, 7
	var managers []*session.Manager
	var all []*zksync.DoubleBarrier
	for i := range comers {
		m := srv.Connect(t, session.WithTimeout(4*time.Second))
		managers = append(managers, m)
		var opts []zksync.DoubleBarrierOption
		if i%2 == 0 {
			opts = append(opts, zksync.WithID(fmt.Sprint(i)))
		}
		all = append(all, zksync.NewDoubleBarrier(m, "/b", size, opts...))
	}
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for i, b := range all {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				patience, cancel := context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(20*time.Second))))
				err := b.Do(patience, func(context.Context) error {
					mu.Lock()
					passed++
					mu.Unlock()
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
					return nil
				})
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrIDInUse) {
					t.Errorf("%d: %v", i, err)
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
			}
		})
	}
	strikeAtRandom(ctx, srv, managers, rand.New(rand.NewPCG(seed, comers)))
	wg.Wait()
	t.Logf("seed %d: they passed %d times", seed, passed)
	if passed == 0 {
		t.Error("nobody has ever passed")
	}
	time.Sleep(time.Minute)
	wholeRound(t, srv, all[:size]...)
	wholeRound(t, srv, all[size:2*size]...)
}

// strikeAtRandom breaks connections and ends sessions until ctx ends.
func strikeAtRandom(ctx context.Context, srv *zksynctest.Server, managers []*session.Manager, rnd *rand.Rand) {
	moments := []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rnd.Int64N(int64(3 * time.Second))))
		present, cancel := context.WithTimeout(ctx, time.Second)
		s, err := managers[rnd.IntN(len(managers))].Session(present)
		cancel()
		if err != nil {
			continue
		}
		switch rnd.IntN(5) {
		case 0:
			srv.Disconnect(s.ID())
		case 1:
			srv.ExpireSession(s.ID())
		case 2:
			srv.Partition(s.ID())
			time.AfterFunc(time.Duration(rnd.Int64N(int64(10*time.Second))), func() { srv.Heal(s.ID()) })
		default:
			srv.Inject(zksynctest.Fault{Session: s.ID(), At: moments[rnd.IntN(len(moments))], Nth: 1 + rnd.IntN(5), Do: zksynctest.Disconnect})
		}
	}
}
