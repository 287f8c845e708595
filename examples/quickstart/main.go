// Quickstart lets several workers take turns under one lock while things go wrong,
// prints the events, and judges whether two of them ever held the lock at the same
// time.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -servers zk1:2181,zk2:2181 -for 30s
//
// Without -servers it brings its own ZooKeeper server, in this process. Each
// worker has a session of its own, as if it were a process of its own.
//
// The exit status is 0 if the lock kept its promises, 1 if it did not or the run
// failed, and 2 if the command line makes no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

type config struct {
	servers string
	length  time.Duration
	workers int
	timeout time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitUsage
	}
	st, err := openStage(cfg)
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFailed
	}
	defer st.close()
	v, err := play(ctx, cfg, st, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		if errors.Is(err, session.ErrInvalidServers) {
			return exitUsage
		}
		return exitFailed
	}
	return v.status()
}

func parse(args []string, stderr io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.StringVar(&cfg.servers, "servers", "", "connection string `host:port,...` of an ensemble; empty for a server in this process")
	flags.DurationVar(&cfg.length, "for", 10*time.Second, "length of the run")
	flags.IntVar(&cfg.workers, "workers", 4, "number of workers, each with a session of its own")
	flags.DurationVar(&cfg.timeout, "timeout", 2*time.Second, "session timeout to ask for; a server may grant another")
	flags.SetOutput(io.Discard) // the error is reported once, by run
	flags.Usage = func() {}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stderr, "Workers take turns under one lock while things go wrong.\n\nUsage: quickstart [flags]")
			flags.SetOutput(stderr)
			flags.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case flags.NArg() > 0:
		return cfg, fmt.Errorf("unexpected argument %q: there are flags only, see -help", flags.Arg(0))
	case cfg.length < time.Second:
		return cfg, fmt.Errorf("-for %v: want at least 1s", cfg.length)
	case cfg.workers < 2 || cfg.workers > 50:
		return cfg, fmt.Errorf("-workers %d: want 2 to 50", cfg.workers)
	case cfg.timeout < 200*time.Millisecond || cfg.timeout > time.Hour:
		return cfg, fmt.Errorf("-timeout %v: want 200ms to 1h", cfg.timeout)
	}
	return cfg, nil
}

// errTimeUp ends the run in order, as opposed to a failure or Ctrl-C.
var errTimeUp = errors.New("the time is up")

// play goes through one run and prints it, verdict included.
func play(ctx context.Context, cfg config, st *stage, out io.Writer) (v verdict, err error) {
	show := newTimeline(out, cfg.workers)
	res := newResource()
	sab := newSaboteur(st, show, res)
	workers, err := hire(ctx, cfg, st, show, res, sab)
	if err != nil {
		return v, err
	}
	granted, err := workers[0].timeout(ctx)
	if err == nil {
		show.begin(st, granted, cfg)
		err = work(ctx, cfg, workers, sab, granted)
	}
	stopped := ctx.Err() != nil
	if err == nil && !stopped {
		show.fault("the time is up")
	}
	dismiss(workers)
	if err == nil || stopped {
		v = judge(collect(workers), res.history())
		v.missed, v.stopped = sab.missed(), stopped
		show.end(v)
		return v, nil
	}
	return v, err
}

// work lets the workers run until the time is up, ctx ends or one of them fails.
func work(ctx context.Context, cfg config, workers []*worker, sab *saboteur, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.length, errTimeUp)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		g.Go(func() error { return w.run(ctx) })
	}
	g.Go(func() error { return sab.run(ctx, cfg.length, timeout) })
	return g.Wait()
}
