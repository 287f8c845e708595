// Command workers shares out work among workers that come and go.
//
//	go run ./examples/workers
//
// starts an embedded server and three workers, stops one and starts another
// half way, and prints who works on which shards. With -servers it is one worker;
// start it on as many machines as you like:
//
//	go run ./examples/workers -servers zk1:2181,zk2:2181 -id worker-1 -for 0
//
// The list of members alone, which all workers see, decides the shards of each
// worker. The workers do not see a change at the same moment, so a lock for each
// shard keeps two workers from working on it while they disagree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("workers", flag.ContinueOnError)
	fs.SetOutput(stderr)
	servers := fs.String("servers", "", "the ensemble as host:port,...; without it an embedded server and several workers are started")
	path := fs.String("path", "/workers", "where the workers meet")
	id := fs.String("id", "", "the name of this worker, with -servers; the default is host and process")
	shards := fs.Int("shards", 12, "how many shards there are; the same number for all")
	length := fs.Duration("for", 6*time.Second, "how long to go on; 0 is until interrupted")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *shards < 1 || *shards > 1<<16 || *length < 0 || fs.NArg() > 0 {
		fmt.Fprintf(stderr, "workers: -shards %d is to be from 1 to 65536, -for %v at least 0, and nothing may follow the flags (%q)\n",
			*shards, *length, fs.Args())
		return 2
	}
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	b := &board{out: stdout, start: time.Now(), owners: make([]string, *shards)}
	var err error
	if *servers != "" {
		name := *id
		if name == "" {
			host, _ := os.Hostname()
			name = fmt.Sprintf("%s:%d", host, os.Getpid())
		}
		err = connect(ctx, *servers, *path, name, *shards, b)
	} else {
		err = demonstrate(ctx, *path, *shards, *length, b)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "workers: %v\n", err)
		return 1
	}
	return b.verdict()
}

func connect(ctx context.Context, servers, path, id string, shards int, b *board, opts ...session.Option) error {
	m, err := session.Connect(ctx, servers, opts...)
	if err != nil {
		return err
	}
	defer m.Close()
	return (&worker{m: m, path: path, id: id, shards: shards, board: b}).run(ctx)
}

// demonstrate runs three workers on a server of its own. After a third of the
// time one of them ends, and after two thirds a fourth begins.
func demonstrate(ctx context.Context, path string, shards int, length time.Duration, b *board) error {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return err
	}
	defer srv.Close()
	g, ctx := errgroup.WithContext(ctx)
	start := func(ctx context.Context, id string) {
		g.Go(func() error {
			return connect(ctx, "127.0.0.1:2181", path, id, shards, b, session.WithDialer(srv.Dial))
		})
	}
	first, end := context.WithCancel(ctx)
	defer end()
	start(first, "anna")
	start(ctx, "bert")
	start(ctx, "cleo")
	if length > 0 {
		g.Go(func() error {
			if !pause(ctx, length/3) {
				return nil
			}
			b.say("anna leaves")
			end()
			if !pause(ctx, length/3) {
				return nil
			}
			b.say("dora comes")
			start(ctx, "dora")
			return nil
		})
	}
	return g.Wait()
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
