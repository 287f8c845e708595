package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

func ExampleQueue() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	go func() {
		for i := range 3 {
			if err := q.Put(ctx, fmt.Appendf(nil, "order %d", i)); err != nil {
				log.Print(err)
			}
		}
	}()
	n := 0
	for msg := range q.Chan() {
		fmt.Printf("%s\n", msg)
		if n++; n == 3 {
			break
		}
	}
	q.Close() // gives back the messages that were not received
	// Output:
	// order 0
	// order 1
	// order 2
}

func ExampleQueue_Messages() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	if err := q.Put(ctx, []byte("the only one")); err != nil {
		log.Fatal(err)
	}
	failed := false
	for msg := range q.Messages() {
		if !failed {
			failed = true
			fmt.Printf("%s: give it back\n", msg.Data)
			msg.Nack(ctx)
			continue
		}
		fmt.Printf("%s: done, %v\n", msg.Data, msg.Ack(ctx))
		break
	}
	// Output:
	// the only one: give it back
	// the only one: done, <nil>
}

func ExampleMessage_Ack() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	if err := q.Put(ctx, []byte("order")); err != nil {
		log.Fatal(err)
	}
	msg := <-q.Messages()
	q.Close() // before the message was acknowledged
	err := msg.Ack(ctx)
	fmt.Println("somebody else gets it:", errors.Is(err, zksync.ErrLost))
	// Output: somebody else gets it: true
}

func ExampleQueue_Take() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	if err := q.PutAll(ctx, []byte("first"), []byte("second")); err != nil {
		log.Fatal(err)
	}
	data, err := q.Take(ctx)
	fmt.Printf("%s %v\n", data, err)
	data, ok, err := q.TryTake(ctx)
	fmt.Printf("%s %v %v\n", data, ok, err)
	_, ok, err = q.TryTake(ctx)
	fmt.Println(ok, err)
	// Output:
	// first <nil>
	// second true <nil>
	// false <nil>
}

func ExamplePriorityQueue() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewPriorityQueue(m, "/queues/jobs")
	defer q.Close()
	for priority, job := range []string{"put out the fire", "make tea", "tidy up"} {
		if err := q.Put(ctx, []byte(job), priority); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		fmt.Printf("%s\n", <-q.Chan())
	}
	// Output:
	// put out the fire
	// make tea
	// tidy up
}

func ExampleQueue_Chan() {
	m, stop := startExample()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	if err := q.Put(ctx, []byte("order 66")); err != nil {
		log.Fatal(err)
	}
	// In a select, a closed channel is told from a message by ok.
	select {
	case msg, ok := <-q.Chan():
		if !ok {
			log.Fatal(q.Err())
		}
		fmt.Printf("%s\n", msg)
	case <-ctx.Done():
		log.Fatal(ctx.Err())
	}
	// Output: order 66
}

func ExampleWithPrefetch() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	// Work on a message takes minutes: claim no message ahead, so that other
	// consumers get it.
	slow := zksync.NewQueue(m, "/queues/films", zksync.WithPrefetch(1))
	defer slow.Close()
	if err := slow.PutAll(ctx, []byte("the first film"), []byte("the second"), []byte("the third")); err != nil {
		log.Fatal(err)
	}
	msg := <-slow.Messages()
	fmt.Printf("%s\n", msg.Data)
	fmt.Println(msg.Ack(ctx))
	// Output:
	// the first film
	// <nil>
}

func ExampleDelayQueue() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	q := zksync.NewDelayQueue(m, "/queues/reminders")
	defer q.Close()
	start := time.Now()
	if err := q.Put(ctx, []byte("later"), 50*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	if err := q.Put(ctx, []byte("now"), 0); err != nil {
		log.Fatal(err)
	}
	seen := 0
	for msg := range q.Chan() {
		fmt.Printf("%s\n", msg)
		if seen++; seen == 2 {
			q.Close()
		}
	}
	fmt.Println("in time:", time.Since(start) >= 50*time.Millisecond)
	// Output:
	// now
	// later
	// in time: true
}
