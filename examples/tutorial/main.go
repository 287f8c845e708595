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
	"strings"
	"sync"
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
	connect, stop, err := stage(args[1])
	if err != nil {
		return err
	}
	defer stop()
	all, ctx := errgroup.WithContext(ctx)
	part := func(who string, take func(m *session.Manager, who string) error) {
		all.Go(func() error {
			connecting, cancel := context.WithTimeout(ctx, connectTimeout)
			defer cancel()
			m, err := connect(connecting)
			if err != nil {
				return err
			}
			defer m.Close()
			return take(m, who)
		})
	}
	participate := func(m *session.Manager, who string) error { return participate(ctx, m, n, who, out) }
	produce := func(m *session.Manager, who string) error { return produce(ctx, m, n, who, out) }
	consume := func(m *session.Manager, who string) error { return consume(ctx, m, n, who, out) }
	switch alone := args[1] != embedded; {
	case args[0] == "bTest" && alone:
		part("", participate)
	case args[0] == "bTest":
		for i := range n {
			part(fmt.Sprintf("participant %d: ", i+1), participate)
		}
	case alone && args[3] == producer:
		part("", produce)
	case alone:
		part("", consume)
	default:
		part("producer: ", produce)
		part("consumer: ", consume)
	}
	return all.Wait()
}

const (
	embedded = "embedded"
	producer = "p"
	consumer = "c"

	// A process that finds no server says so after this long. The wait for the other
	// participants is not bounded; its user may interrupt it.
	connectTimeout = 10 * time.Second
)

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
