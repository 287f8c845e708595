package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

const (
	// queuePath and firstItem have the values of the classic program, whose items are
	// numbers of four bytes.
	queuePath = "/app1"
	firstItem = 10

	producer = "p"
	consumer = "c"
)

// queueTest is a producer or a consumer, or both where the server is our own.
func queueTest(ctx context.Context, servers string, count int, what string, out io.Writer) error {
	connect, stop, err := stage(servers)
	if err != nil {
		return err
	}
	defer stop()
	if servers != embedded {
		return exchange(ctx, connect, count, what, "", out)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return exchange(ctx, connect, count, producer, "producer: ", out) })
	both.Go(func() error { return exchange(ctx, connect, count, consumer, "consumer: ", out) })
	return both.Wait()
}

// exchange produces or consumes items.
func exchange(ctx context.Context, connect func(context.Context) (*session.Manager, error), count int, what, who string, out io.Writer) error {
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	m, err := connect(connecting)
	if err != nil {
		return err
	}
	defer m.Close()

	q := zksync.NewQueue(m, queuePath)
	defer q.Close()
	if what == producer {
		return produce(ctx, q, count, who, out)
	}
	return consume(ctx, q, count, who, out)
}

func produce(ctx context.Context, q *zksync.Queue, count int, who string, out io.Writer) error {
	for i := range count {
		if err := q.Put(ctx, binary.BigEndian.AppendUint32(nil, uint32(firstItem+i))); err != nil {
			return fmt.Errorf("%d of %d were produced: %w", i, count, err)
		}
	}
	fmt.Fprintf(out, "%sproduced %d\n", who, count)
	return nil
}

// consume waits for items that are not there yet. Each is removed before it is
// printed, as in the tutorial: no consumer gets it twice.
func consume(ctx context.Context, q *zksync.Queue, count int, who string, out io.Writer) error {
	for i := range count {
		data, err := q.Take(ctx)
		if err != nil {
			return fmt.Errorf("%d of %d were consumed: %w", i, count, err)
		}
		if len(data) != 4 {
			return fmt.Errorf("%d of %d were consumed: %q is no item of this program", i, count, data)
		}
		fmt.Fprintf(out, "%sitem %d\n", who, binary.BigEndian.Uint32(data))
	}
	return nil
}
