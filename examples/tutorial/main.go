// Command tutorial is the program of ZooKeeper's classic tutorial, with its arguments.
// These commands are one participant in a double barrier of size 2, a producer of 100
// items of a queue, and a consumer of 100 items:
//
//	go run ./examples/tutorial bTest host:2181 2
//	go run ./examples/tutorial qTest host:2181 100 p
//	go run ./examples/tutorial qTest host:2181 100 c
//
// With the address embedded, the program starts a server of its own and all participants.
// The original needs some hundred lines for these few calls. Its paths and items are the
// same, but the names of its znodes differ, so the two programs share no barriers or items.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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

const (
	embedded = "embedded"
	producer = "p"
	consumer = "c"
	patience = 10 * time.Second // with servers; the wait for other participants is not bounded
)

var errUsage = errors.New("wrong arguments")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := test(ctx, args, log.New(stdout, "", 0))
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
func test(ctx context.Context, args []string, out *log.Logger) error {
	switch {
	case len(args) == 0 || args[0] != "bTest" && args[0] != "qTest":
		return fmt.Errorf("%w: %q, want bTest or qTest", errUsage, strings.Join(args, " "))
	case args[0] == "bTest" && len(args) != 3:
		return fmt.Errorf("%w: bTest has two, the servers and the size, not %d", errUsage, len(args)-1)
	case args[0] == "qTest" && len(args) != 4:
		return fmt.Errorf("%w: qTest has three, the servers, the count, and p or c, not %d", errUsage, len(args)-1)
	case args[0] == "qTest" && args[3] != producer && args[3] != consumer:
		return fmt.Errorf("%w: %q, want p for a producer or c for a consumer", errUsage, args[3])
	}
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 1 {
		return fmt.Errorf("%w: %q is not a number from 1 up", errUsage, args[2])
	}
	servers, opts := args[1], []session.Option(nil)
	if servers == embedded {
		srv, err := zkserver.New(zkserver.Config{})
		if err != nil {
			return err
		}
		defer srv.Close()
		servers, opts = "127.0.0.1:2181", append(opts, session.WithDialer(srv.Dial))
	}
	all, ctx := errgroup.WithContext(ctx)
	start := func(who string, play part) {
		all.Go(func() error {
			connecting, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			m, err := session.Connect(connecting, servers, opts...)
			if err != nil {
				return err
			}
			defer m.Close()
			return play(ctx, m, n, func(format string, args ...any) { out.Printf(who+format, args...) })
		})
	}
	switch roles := map[string]part{producer: produce, consumer: consume}; {
	case args[0] == "bTest" && args[1] == embedded:
		for i := range n {
			start(fmt.Sprintf("participant %d: ", i+1), participate)
		}
	case args[0] == "bTest":
		start("", participate)
	case args[1] == embedded:
		start("producer: ", produce)
		start("consumer: ", consume)
	default:
		start("", roles[args[3]])
	}
	return all.Wait()
}
