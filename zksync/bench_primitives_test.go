package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// These run on the embedded server, which waits for no disk: they measure the costs
// of the client and of the round trips. examples/bench measures the costs on a real
// server, beside other clients.

func benchServer(b *testing.B) *zksynctest.Server {
	return zksynctest.Start(b, zksynctest.WithConfig(zkserver.Config{OpsKept: 1}))
}

// alternate calls one after the other.
func alternate(b *testing.B, calls ...func() error) {
	b.Helper()
	again := func() {
		for _, call := range calls {
			if err := call(); err != nil {
				b.Fatal(err)
			}
		}
	}
	again() // the first call makes requests that later calls do not
	b.ReportAllocs()
	for b.Loop() {
		again()
	}
}

func BenchmarkTryLock(b *testing.B) {
	mu := zksync.NewMutex(benchServer(b).Connect(b), path)
	alternate(b, func() error { _, err := mu.TryLock(b.Context()); return err }, mu.Unlock)
}

func BenchmarkTryLockInVain(b *testing.B) {
	srv := benchServer(b)
	holder, mu := zksync.NewMutex(srv.Connect(b), path), zksync.NewMutex(srv.Connect(b), path)
	lock(b, holder)
	alternate(b, func() error {
		ok, err := mu.TryLock(b.Context())
		if ok {
			err = errors.Join(err, errors.New("took what is taken"))
		}
		return err
	})
}

func BenchmarkLockContext(b *testing.B) {
	mu := zksync.NewMutex(benchServer(b).Connect(b), path)
	alternate(b, func() error { _, err := mu.LockContext(b.Context()); return err }, mu.Unlock)
}

// An iteration is one lock of one of many sessions, which are always in line.
func BenchmarkHandOver(b *testing.B) {
	for _, waiters := range []int{8, 64, 256} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			srv := benchServer(b)
			var managers []*session.Manager
			for range min(waiters, 20) {
				managers = append(managers, srv.Connect(b))
			}
			turns, stop := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			for i := range waiters {
				mu := zksync.NewMutex(managers[i%len(managers)], path)
				wg.Go(func() {
					for {
						if err := mu.Lock(context.Background()); err != nil {
							b.Error(err)
							return
						}
						select {
						case turns <- struct{}{}:
						case <-stop:
						}
						if err := mu.Unlock(); err != nil {
							b.Error(err)
							return
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			for range 2 * waiters { // until all are in line
				<-turns
			}
			b.ReportAllocs()
			for b.Loop() {
				<-turns
			}
			close(stop)
			wg.Wait()
		})
	}
}

func BenchmarkRWMutex(b *testing.B) {
	b.Run("writer", func(b *testing.B) {
		rw := zksync.NewRWMutex(benchServer(b).Connect(b), path)
		alternate(b, func() error { return rw.Lock(b.Context()) }, rw.Unlock)
	})
	b.Run("reader", func(b *testing.B) {
		rw := zksync.NewRWMutex(benchServer(b).Connect(b), path)
		alternate(b, func() error { return rw.RLock(b.Context()) }, rw.RUnlock)
	})
}

func BenchmarkSemaphore(b *testing.B) {
	s := zksync.NewSemaphore(benchServer(b).Connect(b), path, 8)
	alternate(b, func() error { return s.Acquire(b.Context(), 1) }, func() error { return s.Release(1) })
}

// An iteration is one change of the leader.
func BenchmarkElection(b *testing.B) {
	srv := benchServer(b)
	leader, next := zksync.NewElection(srv.Connect(b), path), zksync.NewElection(srv.Connect(b), path)
	if _, err := leader.Campaign(b.Context()); err != nil {
		b.Fatal(err)
	}
	alternate(b, func() error {
		led := make(chan error, 1)
		e := next
		go func() {
			_, err := e.Campaign(b.Context())
			led <- err
		}()
		if err := leader.Resign(); err != nil {
			return err
		}
		leader, next = next, leader
		return <-led
	})
}

func BenchmarkBarrier(b *testing.B) {
	gate := zksync.NewBarrier(benchServer(b).Connect(b), path)
	alternate(b, func() error { return gate.Set(b.Context()) }, func() error { return gate.Remove(b.Context()) },
		func() error { return gate.Wait(b.Context()) })
}

// An iteration is a round of all participants.
func BenchmarkDoubleBarrier(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := benchServer(b)
			var managers []*session.Manager
			for range min(n, 20) {
				managers = append(managers, srv.Connect(b))
			}
			var all []*zksync.DoubleBarrier
			for i := range n {
				all = append(all, zksync.NewDoubleBarrier(managers[i%len(managers)], path, n))
			}
			alternate(b, func() error {
				failed := make([]error, n)
				var wg sync.WaitGroup
				for i, d := range all {
					wg.Go(func() {
						if failed[i] = d.Enter(b.Context()); failed[i] == nil {
							failed[i] = d.Leave(b.Context())
						}
					})
				}
				wg.Wait()
				return errors.Join(failed...)
			})
		})
	}
}

func BenchmarkGroup(b *testing.B) {
	g := zksync.NewGroup(benchServer(b).Connect(b), path)
	var member *zksync.Member
	alternate(b, func() (err error) { member, err = g.Join(b.Context(), "a", nil); return err }, func() error { return member.Leave() })
}

// An iteration is one message that is put, and then taken.
func BenchmarkPutAndTake(b *testing.B) {
	q := zksync.NewQueue(benchServer(b).Connect(b), queuePath)
	defer q.Close()
	message := make([]byte, 100)
	alternate(b, func() error { return q.Put(b.Context(), message) }, func() error { _, err := q.Take(b.Context()); return err })
}

// An iteration is one message. Many goroutines put messages at once, and one consumer
// receives them.
func BenchmarkPutAndReceive(b *testing.B) {
	srv := benchServer(b)
	q, consumer := zksync.NewQueue(srv.Connect(b), queuePath), zksync.NewQueue(srv.Connect(b), queuePath)
	defer q.Close()
	defer consumer.Close()
	message := make([]byte, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for q.Put(ctx, message) == nil {
			}
		})
	}
	messages := consumer.Chan()
	<-messages
	b.ReportAllocs()
	for b.Loop() {
		<-messages
	}
	cancel()
	wg.Wait()
}
