package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// maxAttempts is how many times a worker tries an order.
const maxAttempts = 3

// handle works on one order. An order that fails comes again after a delay that grows,
// and goes to the dead letters after the last attempt.
func handle(ctx context.Context, msg *zksync.Message, work func(order []byte) error, dead *zksync.Queue) error {
	err := work(msg.Data)
	switch {
	case err == nil:
		return msg.Ack(ctx)
	case msg.Attempts < maxAttempts:
		fmt.Printf("%s: attempt %d: %v\n", msg.Data, msg.Attempts, err)
		return msg.Retry(ctx, time.Duration(msg.Attempts)*10*time.Millisecond)
	default:
		fmt.Printf("%s: attempt %d: %v, to the dead letters\n", msg.Data, msg.Attempts, err)
		return msg.MoveTo(ctx, dead)
	}
}

// A worker tries each order three times. Orders that fail each time go to a queue for
// dead letters, where an operator finds them.
func ExampleMessage_Retry() {
	m, stop := startExample()
	defer stop()
	ctx := context.Background()

	orders, dead := zksync.NewQueue(m, "/queues/orders"), zksync.NewQueue(m, "/queues/orders-dead")
	defer orders.Close()
	defer dead.Close()
	if err := orders.PutAll(ctx, []byte("tea"), []byte("coffee")); err != nil {
		log.Fatal(err)
	}
	work := func(order []byte) error {
		if string(order) == "coffee" {
			return errors.New("no beans")
		}
		fmt.Printf("%s: done\n", order)
		return nil
	}
	go func() {
		for msg := range orders.Messages() {
			if err := handle(ctx, msg, work, dead); err != nil {
				log.Print(err) // with ErrLost, the order may come again
			}
		}
	}()
	letter, err := dead.Take(ctx)
	fmt.Printf("dead letter: %s %v\n", letter, err)
	// Output:
	// tea: done
	// coffee: attempt 1: no beans
	// coffee: attempt 2: no beans
	// coffee: attempt 3: no beans, to the dead letters
	// dead letter: coffee <nil>
}

// A test of a handler needs neither a queue nor a server.
func ExampleNewMessage() {
	settle := func(_ context.Context, verb string) error {
		fmt.Println("settled by", verb)
		return nil
	}
	refuse := func([]byte) error { return errors.New("no beans") }

	msg := zksync.NewMessage("/queues/orders/qn-0000000007", []byte("coffee"), settle)
	fmt.Println(handle(context.Background(), msg, refuse, nil))

	msg = zksync.NewMessage("/queues/orders/qn-0000000007", []byte("coffee"), settle)
	fmt.Println(msg.Ack(context.Background()))
	fmt.Println(errors.Is(msg.Nack(context.Background()), zksync.ErrSettled))
	// Output:
	// coffee: attempt 1: no beans
	// settled by Retry
	// <nil>
	// settled by Ack
	// <nil>
	// true
}

func ExampleQueue_All() {
	m, stop := startExample()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	q := zksync.NewQueue(m, "/queues/orders")
	defer q.Close()
	if err := q.PutAll(ctx, []byte("tea"), []byte("coffee")); err != nil {
		log.Fatal(err)
	}
	for msg, err := range q.All(ctx) {
		if err != nil {
			fmt.Println("ended by ctx:", errors.Is(err, context.Canceled))
			break
		}
		fmt.Printf("%s: %v\n", msg.Data, msg.Ack(ctx))
		if string(msg.Data) == "coffee" {
			cancel()
		}
	}
	// Output:
	// tea: <nil>
	// coffee: <nil>
	// ended by ctx: true
}
