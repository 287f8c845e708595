// Command tutorial is the program of ZooKeeper's classic tutorial, with its
// arguments:
//
//	go run ./examples/tutorial bTest host:2181 2
//
// is one participant in a double barrier of size 2: it enters, works for a random
// while, and leaves. Start it twice.
//
//	go run ./examples/tutorial qTest host:2181 100 p
//	go run ./examples/tutorial qTest host:2181 100 c
//
// are a producer and a consumer of 100 items of a queue. Start the consumer first
// or last, or several of both: each item goes to one of them.
//
// With the address embedded it starts a server of its own and all participants,
// and so shows the whole:
//
//	go run ./examples/tutorial bTest embedded 3
//	go run ./examples/tutorial qTest embedded 100 c
//
// The tutorial needs some hundred lines for these few calls. Its paths and items are
// the same, but the names of its znodes differ, so the two programs do not share
// barriers or items.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const usage = `usage: tutorial bTest <servers> <size>           one participant in a double barrier of that size
       tutorial qTest <servers> <count> p|c      produces or consumes that many items of a queue

<servers> is host:port,host:port/chroot, or "embedded" for a server in this process,
with as many participants as it takes.
`

// The exit statuses of the process.
const (
	succeeded = iota
	failed
	misused
)

var errUsage = errors.New("wrong arguments")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := test(ctx, args, &lines{w: stdout})
	if err == nil {
		return succeeded
	}
	fmt.Fprintln(stderr, "tutorial:", err)
	if errors.Is(err, errUsage) {
		fmt.Fprint(stderr, usage)
		return misused
	}
	return failed
}

// test runs the test that the first argument names.
func test(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: want bTest or qTest", errUsage)
	}
	switch name, args := args[0], args[1:]; name {
	case "bTest":
		if len(args) != 2 {
			return fmt.Errorf("%w: bTest has two, the servers and the size, not %d", errUsage, len(args))
		}
		size, err := strconv.Atoi(args[1])
		if err != nil || size < 1 {
			return fmt.Errorf("%w: the size %q is not a number from 1 up", errUsage, args[1])
		}
		return barrierTest(ctx, args[0], size, out)
	case "qTest":
		if len(args) != 3 {
			return fmt.Errorf("%w: qTest has three, the servers, the count, and p or c, not %d", errUsage, len(args))
		}
		count, err := strconv.Atoi(args[1])
		if err != nil || count < 1 {
			return fmt.Errorf("%w: the count %q is not a number from 1 up", errUsage, args[1])
		}
		if args[2] != producer && args[2] != consumer {
			return fmt.Errorf("%w: %q, want p for a producer or c for a consumer", errUsage, args[2])
		}
		return queueTest(ctx, args[0], count, args[2], out)
	default:
		return fmt.Errorf("%w: %q, want bTest or qTest", errUsage, name)
	}
}

const embedded = "embedded"

// stage opens sessions with the servers that were asked for.
func stage(servers string) (connect func(context.Context) (*session.Manager, error), stop func(), err error) {
	if servers != embedded {
		return func(ctx context.Context) (*session.Manager, error) { return session.Connect(ctx, servers) }, func() {}, nil
	}
	srv, err := zkserver.New(zkserver.Config{})
	if err != nil {
		return nil, nil, err
	}
	connect = func(ctx context.Context) (*session.Manager, error) {
		return session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	}
	return connect, func() { srv.Close() }, nil
}

// lines is a writer for several participants.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
