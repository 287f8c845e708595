// Config is a service that follows a znode with its configuration and the live
// members of its group, without a callback or a watch to arm again.
//
//	go run ./examples/config
//
// It brings its own ZooKeeper server, in this process, and plays the operator and the
// other members too: it changes the configuration, breaks connections and ends
// sessions, and shows what the service makes of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const path = "/demo" // the configuration and the members are below

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

// play runs the service on a server of its own, while the rest of its world
// goes through a day in a few seconds.
func play(ctx context.Context, w io.Writer) (err error) {
	out := &printer{w: w, start: time.Now()}
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		return err
	}
	defer m.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, m, out) }()
	err = (&operator{ctx: ctx, srv: srv, service: m, out: out}).day()
	cancel(errDayOver)
	if end := <-served; !errors.Is(end, errDayOver) {
		err = errors.Join(end, err)
	}
	return err
}

var errDayOver = errors.New("the day is over")
