package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// embedded starts a server in this process, and returns how to connect to it and
// how to end it all.
func embedded() (connect func() *session.Manager, stop func()) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var all []*session.Manager
	connect = func() *session.Manager {
		m, err := session.Connect(context.Background(), "127.0.0.1:2181", session.WithDialer(srv.Dial))
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, m)
		return m
	}
	return connect, func() {
		for _, m := range all {
			m.Close()
		}
		srv.Close()
	}
}

// Two processes compute in rounds: nobody begins one while the other is still
// in the one before.
func ExampleDoubleBarrier() {
	connect, stop := embedded()
	defer stop()
	ctx := context.Background()

	var mu sync.Mutex
	done := make(map[int]int) // by round

	var processes sync.WaitGroup
	for range 2 {
		b := zksync.NewDoubleBarrier(connect(), "/app/computation", 2)
		processes.Go(func() {
			for round := range 3 {
				err := b.Do(ctx, func(ctx context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					done[round]++
					return nil
				})
				if err != nil {
					log.Fatal(err)
				}
				mu.Lock()
				if done[round] != 2 {
					log.Fatal("the other one is not done")
				}
				mu.Unlock()
			}
		})
	}
	processes.Wait()
	fmt.Println(done)
	// Output: map[0:2 1:2 2:2]
}

// Enter alone is the synchronising queue: members gather, and all start when
// the last has come.
func ExampleDoubleBarrier_Enter() {
	connect, stop := embedded()
	defer stop()
	ctx := context.Background()

	var members sync.WaitGroup
	gather := func(name string) {
		group := zksync.NewDoubleBarrier(connect(), "/app/members", 3, zksync.WithID(name))
		members.Go(func() {
			if err := group.Enter(ctx); err != nil {
				log.Fatal(err)
			}
			fmt.Println(name, "starts")
		})
	}
	gather("node-1")
	gather("node-2")
	fmt.Println("the last one comes")
	gather("node-3")
	members.Wait()
	// Unordered output:
	// the last one comes
	// node-1 starts
	// node-2 starts
	// node-3 starts
}

// A participant that has waited for long enough learns how many participants have come.
func ExampleCountError() {
	connect, stop := embedded()
	defer stop()

	b := zksync.NewDoubleBarrier(connect(), "/app/computation", 3, zksync.WithMaxWait(200*time.Millisecond))
	err := b.Enter(context.Background())
	var count *zksync.CountError
	if errors.As(err, &count) {
		fmt.Printf("%d of %d, we go on without the others\n", count.There, count.Size)
	}
	fmt.Println(errors.Is(err, zksync.ErrMaxWait), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 1 of 3, we go on without the others
	// true true
}
