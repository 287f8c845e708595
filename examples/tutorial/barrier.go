package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

const (
	// barrierPath is the one of the classic program.
	barrierPath = "/b1"

	// A process that finds no server says so after this long. The wait for the other
	// participants is not bounded; its user may interrupt it.
	connectTimeout = 10 * time.Second

	maxWork = time.Second
)

// barrierTest is one participant in a double barrier, or all of them where the
// server is our own.
func barrierTest(ctx context.Context, servers string, size int, out io.Writer) error {
	connect, stop, err := stage(servers)
	if err != nil {
		return err
	}
	defer stop()
	if servers != embedded {
		return participate(ctx, connect, size, "", out)
	}
	all, ctx := errgroup.WithContext(ctx)
	for i := range size {
		all.Go(func() error { return participate(ctx, connect, size, fmt.Sprintf("participant %d: ", i+1), out) })
	}
	return all.Wait()
}

// participate enters, works for a random while, and leaves.
func participate(ctx context.Context, connect func(context.Context) (*session.Manager, error), size int, who string, out io.Writer) error {
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	m, err := connect(connecting)
	if err != nil {
		return err
	}
	defer m.Close()

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
