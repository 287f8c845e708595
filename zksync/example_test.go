package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// startExample stands for an ensemble and a session with it.
func startExample() (m *session.Manager, stop func()) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		log.Fatal(err)
	}
	m, err = session.Connect(context.Background(), zksynctest.InMemory, session.WithDialer(srv.Dial))
	if err != nil {
		log.Fatal(err)
	}
	return m, func() {
		m.Close()
		srv.Close()
	}
}

func ExampleMutex() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/orders")
	if err := mu.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("alone in all processes")
	if err := mu.Unlock(); errors.Is(err, zksync.ErrLost) {
		fmt.Println("may not have been alone")
	}
	// Output: alone in all processes
}

// A resource that remembers the greatest token refuses a holder that was
// paused for so long that another has the lock.
func ExampleMutex_LockContext() {
	m, stop := startExample()
	defer stop()
	var newest int64
	write := func(token int64, what string) {
		if token < newest {
			fmt.Println("refused:", what)
			return
		}
		newest = token
		fmt.Println("written:", what)
	}

	mu := zksync.NewMutex(m, "/locks/orders")
	first, err := mu.LockContext(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	old, _ := zksync.Token(first)
	write(old, "by the first holder")
	mu.Unlock()

	second, err := mu.LockContext(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	token, _ := zksync.Token(second)
	write(token, "by the second holder")
	write(old, "by the first holder, late")
	mu.Unlock()
	// Output:
	// written: by the first holder
	// written: by the second holder
	// refused: by the first holder, late
}

func ExampleMutex_Do() {
	m, stop := startExample()
	defer stop()

	err := zksync.NewMutex(m, "/locks/orders").Do(context.Background(), func(ctx context.Context) error {
		// ctx ends when the lock is lost.
		return errors.New("out of paper")
	})
	fmt.Println(err)
	// Output: out of paper
}

func ExampleMutex_TryLock() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mine, yours := zksync.NewMutex(m, "/locks/orders"), zksync.NewMutex(m, "/locks/orders")
	for _, mu := range []*zksync.Mutex{mine, yours} {
		ok, err := mu.TryLock(ctx)
		fmt.Println(ok, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleWithLinger() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	mu := zksync.NewMutex(m, "/locks/orders", zksync.WithLinger(time.Second))
	for range 1000 { // one round trip for all of them
		if err := mu.Lock(ctx); err != nil {
			log.Fatal(err)
		}
		mu.Unlock()
	}
	fmt.Println("done")
	// Output: done
}
