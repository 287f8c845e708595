// Command workers shares out work among workers that join and leave.
//
//	go run ./examples/workers
//
// It starts three workers, stops one, starts another, and prints the owners of all shards.
// The list of members decides the shards of each worker. The workers do not see a change at
// the same moment, so an election for each shard excludes two owners while the lists differ.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const path, shards = "/workers", 12

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, 6*time.Second, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

// run runs three workers on a server of its own. After a third of the time one of them
// ends, and after two thirds a fourth begins.
func run(ctx context.Context, length time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	employed, dismiss := context.WithCancel(ctx)
	defer dismiss()
	late, cancel := context.WithTimeout(ctx, length*2/3)
	defer cancel()
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return err
	}
	defer srv.Close()
	b := &board{out: out, start: time.Now()}
	var g errgroup.Group
	start := func(ctx context.Context, id string) {
		g.Go(func() error {
			m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
			if err != nil {
				return err
			}
			defer m.Close()
			return join(ctx, m, id, b)
		})
	}
	start(employed, "anna")
	start(ctx, "bert")
	start(ctx, "cleo")
	// Shown first: the others take her shards at once.
	defer time.AfterFunc(length/3, func() { b.show("anna leaves"); dismiss() }).Stop()
	<-late.Done()
	b.show("dora comes")
	start(ctx, "dora")
	switch err := g.Wait(); {
	case err != nil && ctx.Err() == nil:
		return err
	case b.doubles > 0:
		return fmt.Errorf("%d times two worked on one shard", b.doubles)
	}
	fmt.Fprintf(out, "%d shards were taken, never by two at once\n", shards)
	return nil
}

// A board shows the owners of the shards, and counts conflicts.
type board struct {
	mu      sync.Mutex
	out     io.Writer
	start   time.Time
	owners  [shards]string // empty for nobody
	doubles int            // how often two workers worked on a shard at the same time
}

// move changes the owner of a shard.
func (b *board) move(shard int, from, to string) {
	b.mu.Lock()
	if b.owners[shard] != from {
		b.doubles++
	}
	b.owners[shard] = to
	b.mu.Unlock()
	if to != "" {
		b.show(fmt.Sprintf("%s takes %d", to, shard))
	}
}

// show prints an event and the initials of the owners.
func (b *board) show(event string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, "%6.2fs  %-18s", time.Since(b.start).Seconds(), event)
	for _, id := range b.owners {
		fmt.Fprintf(b.out, " %.1s", strings.ToUpper(id+"."))
	}
	fmt.Fprintln(b.out)
}
