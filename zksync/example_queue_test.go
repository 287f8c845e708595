package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

func ExampleQueue_Put() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	// Any number of goroutines may put: their messages travel together.
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if err := q.Put(ctx, fmt.Appendf(nil, "order %d", i)); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	n, err := q.Len(ctx)
	fmt.Println(n, "orders wait,", err)
	// Output: 100 orders wait, <nil>
}

func ExampleQueue_PutAll() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	if err := q.PutAll(ctx, []byte("first"), []byte("second"), []byte("third")); err != nil {
		log.Fatal(err)
	}
	next, ok, err := q.Peek(ctx)
	fmt.Printf("%s %v %v\n", next, ok, err)
	// Output: first true <nil>
}

func ExampleWithCapacity() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders", zksync.WithCapacity(2))
	defer q.Close()
	if err := q.PutAll(ctx, []byte("first"), []byte("second")); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := q.Put(ctx, []byte("third"))
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

func ExamplePriorityQueue_Put() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewPriorityQueue(m, "/queues/jobs")
	defer q.Close()
	for job, priority := range map[string]int{"tidy up": 9, "put out the fire": 0, "make tea": 3} {
		if err := q.Put(ctx, []byte(job), priority); err != nil {
			log.Fatal(err)
		}
	}
	next, _, err := q.Peek(ctx)
	fmt.Printf("%s, %v\n", next, err)
	// Output: put out the fire, <nil>
}

func ExampleDelayQueue_Put() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewDelayQueue(m, "/queues/reminders")
	defer q.Close()
	if err := q.Put(ctx, []byte("in an hour"), time.Hour); err != nil {
		log.Fatal(err)
	}
	if err := q.Put(ctx, []byte("now"), 0); err != nil {
		log.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // times are rounded up to the next millisecond
	next, _, err := q.Peek(ctx)
	n, _ := q.Len(ctx)
	fmt.Printf("%s, of %d, %v\n", next, n, err)
	// Output: now, of 2, <nil>
}

func ExamplePutAllError() {
	m, stop := startExample()
	defer stop()

	q := zksync.NewQueue(m, "/queues/orders", zksync.WithCapacity(2), zksync.WithMaxWait(50*time.Millisecond))
	defer q.Close()
	messages := [][]byte{[]byte("first"), []byte("second"), []byte("third")}
	err := q.PutAll(context.Background(), messages...)
	if partly := (*zksync.PutAllError)(nil); errors.As(err, &partly) && !errors.Is(err, zksync.ErrOutcomeUnknown) {
		fmt.Printf("still to be put: %s\n", messages[partly.Put:])
	}
	// Output: still to be put: [third]
}
