package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// No more than n units of a Semaphore are held at the same time, and a request gets all its units or none.
func TestSemaphoreHistories(t *testing.T) {
	var lost atomic.Int64
	troubled(func(t *testing.T, seed uint64, tr trouble, path string, pace time.Duration) {
		admin := tr.srv.Connect(t)
		var sems []*zksync.Semaphore
		for _, m := range tr.managers {
			sems = append(sems, zksync.NewSemaphore(m, path, 4, zksync.WithSizeFrom(path+"-size")))
		}
		s, err := admin.Session(t.Context())
		if err == nil {
			_, err = s.Create(t.Context(), path+"-size", []byte("4"), zk.FlagPersistent)
		}
		if err != nil {
			t.Fatal(err)
		}
		tr.with(t, seed, pace, func() {
			ctx, cancel := context.WithCancel(t.Context())
			var operator sync.WaitGroup
			operator.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 77))
				for ctx.Err() == nil {
					n := 2 + rnd.IntN(5)
					called := tr.h.clock.Add(1)
					_, err := s.Set(t.Context(), path+"-size", []byte(strconv.Itoa(n)), -1)
					for errors.Is(err, session.ErrConnectionLost) {
						_, err = s.Set(t.Context(), path+"-size", []byte(strconv.Itoa(n)), -1)
					}
					if err != nil {
						t.Error("change the size:", err)
						return
					}
					tr.h.note(-1, resize{n}, called, tr.h.clock.Add(1))
					select {
					case <-time.After(time.Duration(rnd.Int64N(int64(2 * pace)))):
					case <-ctx.Done():
					}
				}
			})
			tr.work(t, seed, pace, func(ctx context.Context, client, manager int, rnd *rand.Rand) error {
				sem, units := sems[manager], 1+rnd.IntN(3)
				err := tr.h.hold(client, manager, take{units}, func() (context.Context, error) { return sem.AcquireContext(ctx, units) },
					time.Duration(rnd.Int64N(int64(pace))), func() error { return sem.Release(units) })
				if errors.Is(err, zksync.ErrTooMany) {
					return nil
				}
				return err
			})
			cancel()
			operator.Wait()
		}, path+"/locks", path+"/leases")
		lost.Add(int64(tr.h.lost))
		tr.h.check(t, 4)
	}).everywhere(t, 20)
	if lost.Load() == 0 {
		t.Error("no hold was lost: this shows nothing")
	}
}
