package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

const (
	barrierPath = "/b1" // as in the classic program
	maxWork     = time.Second
)

// participate enters, works for a random while, and leaves.
func participate(ctx context.Context, m *session.Manager, size int, who string, out io.Writer) error {
	b := zksync.NewDoubleBarrier(m, barrierPath, size)
	fmt.Fprintf(out, "%swaiting for %d to be there\n", who, size)
	if err := b.Enter(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%sentered\n", who)

	work := rand.N(maxWork)
	select {
	case <-time.After(work):
		fmt.Fprintf(out, "%sworked for %v\n", who, work.Round(time.Millisecond))
	case <-ctx.Done(): // Leave says so
	}

	if err := b.Leave(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "%sleft, and so have the others\n", who)
	return nil
}
