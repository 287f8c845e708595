// Command workers shares out work among workers that come and go.
//
//	go run ./examples/workers
//
// starts an embedded server and three workers, stops one and starts another
// half way, and prints who works on which shards.
//
// The list of members alone, which all workers see, decides the shards of each
// worker. The workers do not see a change at the same moment, so a lock for each
// shard keeps two workers from working on it while they disagree.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	path   = "/workers" // where the workers meet
	shards = 12
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, 6*time.Second, os.Stdout, os.Stderr))
}

// run runs three workers on a server of its own. After a third of the time one of them
// ends, and after two thirds a fourth begins. It returns the exit status.
func run(ctx context.Context, length time.Duration, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		fmt.Fprintln(stderr, "workers:", err)
		return 1
	}
	defer srv.Close()
	b := &board{out: stdout, start: time.Now()}
	var g errgroup.Group
	start := func(ctx context.Context, id string) {
		g.Go(func() error {
			m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
			if err != nil {
				return err
			}
			defer m.Close()
			return (&worker{m: m, id: id, board: b}).run(ctx)
		})
	}
	first, end := context.WithCancel(ctx)
	defer end()
	start(first, "anna")
	start(ctx, "bert")
	start(ctx, "cleo")
	pause(ctx, length/3)
	b.say("anna leaves")
	end()
	pause(ctx, length/3)
	b.say("dora comes")
	start(ctx, "dora")
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, "workers:", err)
		return 1
	}
	return b.verdict()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
