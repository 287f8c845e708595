package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

const (
	// queuePath and firstItem have the values of the classic program, whose items are
	// numbers of four bytes.
	queuePath = "/app1"
	firstItem = 10
)

func produce(ctx context.Context, m *session.Manager, count int, who string, out io.Writer) error {
	q := zksync.NewQueue(m, queuePath)
	defer q.Close()
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
func consume(ctx context.Context, m *session.Manager, count int, who string, out io.Writer) error {
	q := zksync.NewQueue(m, queuePath)
	defer q.Close()
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
