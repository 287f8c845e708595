package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// The classic program has the same values, and its items are numbers of four bytes.
const (
	barrierPath = "/b1"
	queuePath   = "/app1"
	firstItem   = 10
)

// A part is played by one participant, in a session of its own. n is the size of the
// barrier or the number of items.
type part func(ctx context.Context, m *session.Manager, n int, say func(format string, args ...any)) error

// participate enters, works for a random while, and leaves.
func participate(ctx context.Context, m *session.Manager, n int, say func(string, ...any)) error {
	b := zksync.NewDoubleBarrier(m, barrierPath, n)
	say("waiting for %d to be there", n)
	if err := b.Enter(ctx); err != nil {
		return err
	}
	say("entered")
	work := rand.N(time.Second)
	select {
	case <-time.After(work):
		say("worked for %v", work.Round(time.Millisecond))
	case <-ctx.Done(): // Leave says so
	}
	if err := b.Leave(ctx); err != nil {
		return err
	}
	say("left, and so have the others")
	return nil
}

func produce(ctx context.Context, m *session.Manager, n int, say func(string, ...any)) error {
	q := zksync.NewQueue(m, queuePath)
	defer q.Close()
	for i := range n {
		if err := q.Put(ctx, binary.BigEndian.AppendUint32(nil, uint32(firstItem+i))); err != nil {
			return fmt.Errorf("%d of %d were produced: %w", i, n, err)
		}
	}
	say("produced %d", n)
	return nil
}

// consume waits for items that are not there yet. Each is removed before it is
// printed, as in the tutorial: no consumer gets it twice.
func consume(ctx context.Context, m *session.Manager, n int, say func(string, ...any)) error {
	q := zksync.NewQueue(m, queuePath)
	defer q.Close()
	for i := range n {
		data, err := q.Take(ctx)
		if err != nil {
			return fmt.Errorf("%d of %d were consumed: %w", i, n, err)
		}
		if len(data) != 4 {
			return fmt.Errorf("%d of %d were consumed: %q is no item of this program", i, n, data)
		}
		say("item %d", binary.BigEndian.Uint32(data))
	}
	return nil
}
