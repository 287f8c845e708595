// Config is a service that follows a znode with its configuration and the live
// members of its group, without a callback or a watch to arm again.
//
//	go run ./examples/config
//	go run ./examples/config -servers zk1:2181,zk2:2181/app -path /demo
//
// Without -servers it brings its own ZooKeeper server, in this process, and plays
// the operator and the other members too: it changes the configuration, breaks
// connections and ends sessions, and shows what the service makes of it. With
// -servers it joins the group and follows both until it is interrupted; change
// <path>/config by any client.
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

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// connectTimeout is how long the first connection may take.
const connectTimeout = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("config", flag.ContinueOnError)
	flags.SetOutput(stderr)
	servers := flags.String("servers", "", "connection string `host:port,...` of an ensemble; empty for a server in this process")
	path := flags.String("path", "/demo", "znode below which the configuration and the members are")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "config: what is %q? see -help\n", flags.Arg(0))
		return exitUsage
	}
	if err := session.CheckPath(*path); err != nil || *path == "/" {
		fmt.Fprintf(stderr, "config: -path %q: want the path of a znode, as /demo\n", *path)
		return exitUsage
	}
	out := &printer{w: stdout, start: time.Now()}
	var err error
	if *servers == "" {
		err = play(ctx, *path, out)
	} else {
		err = join(ctx, *servers, *path, out)
	}
	switch {
	case errors.Is(err, session.ErrInvalidServers):
		fmt.Fprintf(stderr, "config: %v\n", err)
		return exitUsage
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(stderr, "config: %v\n", err)
		return exitFailed
	}
	return 0
}

// join follows on an ensemble until ctx ends, as a member of the group.
func join(ctx context.Context, servers, path string, out *printer) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	member, err := m.Ephemeral(ctx, fmt.Sprintf("%s/members/%s", path, memberName()), nil)
	if err != nil {
		return err
	}
	defer member.Close()
	return serve(ctx, m, path, out)
}

func connect(ctx context.Context, servers string, opts ...session.Option) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return session.Connect(ctx, servers, opts...)
}

// memberName tells processes of one group apart.
func memberName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "somewhere"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// play runs the service on a server of its own, while the rest of its world
// goes through a day in a few seconds.
func play(ctx context.Context, path string, out *printer) (err error) {
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	m, err := connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		return err
	}
	defer m.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, m, path, out) }()
	err = (&operator{ctx: ctx, srv: srv, service: m, path: path, out: out}).day()
	cancel(errDayOver)
	if end := <-served; !errors.Is(end, errDayOver) {
		err = errors.Join(end, err)
	}
	return err
}

var errDayOver = errors.New("the day is over")
