// Quickstart lets four workers take turns under one lock while things go wrong, prints
// the events, and judges whether two of them ever held the lock at the same time.
//
//	go run ./examples/quickstart
//
// It brings its own ZooKeeper server, in this process. Each worker has a session and a
// link to the server of its own, as if it were a process of its own.
//
// The exit status is 0 if the lock kept its promises, and 1 if it did not or the run
// failed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	length  = 10 * time.Second // of the run
	timeout = 2 * time.Second  // of the sessions
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	v, err := run(ctx, 4, func(string) string { return "/quickstart/lock" }, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
	}
	if err != nil || !v.ok() {
		os.Exit(1)
	}
}

// run goes through one run and prints it, with the verdict. lock returns the path of
// the lock for a worker: the same path for all, unless a test needs a lock that does not
// exclude.
func run(ctx context.Context, workers int, lock func(worker string) string, out io.Writer) (v verdict, err error) {
	// Servers expire sessions at multiples of their tick: a short tick keeps the run short.
	srv, err := zkserver.New(zkserver.Config{TickTime: timeout / 10, MinSessionTimeout: timeout, MaxSessionTimeout: timeout})
	if err != nil {
		return v, err
	}
	defer srv.Close()
	show, res := newTimeline(out, workers), newResource()
	faults := &schedule{expire: srv.ExpireSession}
	all := make([]*worker, workers)
	for i := range all {
		w := &worker{number: i, name: fmt.Sprintf("w%d", i+1), link: zksynctest.NewLink(srv.Dial), show: show, res: res, faults: faults}
		defer w.link.Close()
		w.m, err = session.Connect(ctx, zksynctest.InMemory, session.WithTimeout(timeout), session.WithDialer(w.link.Dial))
		if err != nil {
			return v, err
		}
		defer w.m.Close()
		w.lock = zksync.NewMutex(w.m, lock(w.name))
		all[i] = w
	}

	show.begin(workers)
	faults.start = time.Now()
	working, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	g, working := errgroup.WithContext(working)
	for _, w := range all {
		g.Go(func() error { return w.run(working) })
	}
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return v, err
	}
	if ctx.Err() == nil {
		show.fault("the time is up")
	}
	var spans []span
	for _, w := range all {
		spans = append(spans, w.spans...)
	}
	v = judge(spans, res.past)
	v.print(out, ctx.Err() != nil)
	return v, nil
}
