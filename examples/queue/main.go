// Command queue has orders worked on by several processes, kills one of these, and
// accounts for every order at the end.
//
//	go run ./examples/queue
//
// starts an embedded server on a loopback address, a producer in this process, and
// three consumers that are processes of their own. One is killed with -9 while it
// has an order in hand: the order goes to another. The exit status is 0 if
// each was acknowledged exactly once and 1 if not. With -servers all of that happens on
// an ensemble, and the parts can be started alone, on as many machines as you like:
//
//	go run ./examples/queue -servers zk1:2181,zk2:2181 -produce 1000
//	go run ./examples/queue -servers zk1:2181,zk2:2181 -consume
//
// The producer waits while as many orders are in the queue as -capacity says. A
// consumer acknowledges an order when the work is done, and gives the order back when
// the work fails. With -chan it receives orders by Chan, which removes each order
// from the queue before the work begins.
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
	"github.com/go-zksync/toolkit/zksync"
)

// The exit statuses of the process.
const (
	succeeded = iota
	failed
	misused
)

// connectTimeout is how long the first connection may take.
const connectTimeout = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// options are the options of the command line.
type options struct {
	servers   string
	path      string
	timeout   time.Duration
	capacity  int
	work      time.Duration
	fail      int
	orders    int
	consumers int

	produce  int
	consume  bool
	byChan   bool
	id       string
	untilEOF bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("queue", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.servers, "servers", "", "the ensemble as host:port,...; without it an embedded server is started")
	fs.StringVar(&o.path, "path", "/queues/orders", "where the queue is")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Second, "session timeout: how soon the orders of a dead consumer go to others")
	fs.IntVar(&o.capacity, "capacity", 20, "the producer waits while so many orders are in the queue")
	fs.DurationVar(&o.work, "work", 40*time.Millisecond, "how long the work on an order takes")
	fs.IntVar(&o.fail, "fail", 40, "each consumer fails once at every order whose number this divides; 0 for none")
	fs.IntVar(&o.orders, "orders", 150, "how many orders there are, where all is shown")
	fs.IntVar(&o.consumers, "consumers", 3, "how many consumers there are, where all is shown; the second is killed")
	fs.IntVar(&o.produce, "produce", 0, "with -servers, only put so many orders")
	fs.BoolVar(&o.consume, "consume", false, "with -servers, only consume, until interrupted")
	fs.BoolVar(&o.byChan, "chan", false, "with -consume, receive by Chan rather than acknowledge")
	fs.StringVar(&o.id, "id", fmt.Sprint("process-", os.Getpid()), "with -consume, what the consumer calls itself")
	fs.BoolVar(&o.untilEOF, "until-eof", false, "with -consume, end when the standard input does")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return o, o.check(fs.Args())
}

func (o *options) check(rest []string) error {
	alone := o.produce != 0 || o.consume
	switch {
	case len(rest) > 0:
		return fmt.Errorf("what is %q? see -help", rest)
	case o.capacity < 1 || o.orders < 1 || o.produce < 0:
		return fmt.Errorf("-capacity %d and -orders %d are to be at least 1, -produce %d at least 0", o.capacity, o.orders, o.produce)
	case o.work < 0 || o.fail < 0:
		return fmt.Errorf("-work %v and -fail %d are to be at least 0", o.work, o.fail)
	case o.consumers < 2:
		return fmt.Errorf("-consumers %d is to be at least 2: one is killed", o.consumers)
	case o.produce != 0 && o.consume:
		return errors.New("-produce and -consume are for two processes")
	case alone && o.servers == "":
		return errors.New("-produce and -consume want -servers: nobody else finds an embedded server")
	case !o.consume && (o.byChan || o.untilEOF):
		return errors.New("-chan and -until-eof mean something only with -consume")
	}
	if err := session.CheckPath(o.path); err != nil || o.path == "/" {
		return fmt.Errorf("-path %q: want the path of a znode, as /queues/orders", o.path)
	}
	return nil
}

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return succeeded
	case err != nil:
		fmt.Fprintf(stderr, "queue: %v\n", err)
		return misused
	}
	switch {
	case o.produce > 0:
		err = produceAlone(ctx, o, stdout)
	case o.consume:
		err = consumeAlone(ctx, o, stdin, stdout)
	default:
		err = show(ctx, o, stdout)
	}
	switch {
	case errors.Is(err, session.ErrInvalidServers), errors.Is(err, session.ErrInvalidOption):
		fmt.Fprintf(stderr, "queue: %v\n", err)
		return misused
	case err != nil:
		fmt.Fprintf(stderr, "queue: %v\n", err)
		return failed
	}
	return succeeded
}

// open connects, and opens the queue. close takes a moment, because it gives
// unreceived messages back.
func open(ctx context.Context, o *options, opts ...zksync.QueueOption) (q *zksync.Queue, close func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	m, err := session.Connect(ctx, o.servers, session.WithTimeout(o.timeout))
	if err != nil {
		return nil, nil, err
	}
	q = zksync.NewQueue(m, o.path, opts...)
	return q, func() {
		q.Close()
		m.Close()
	}, nil
}

// produceAlone is the producer as a process of its own.
func produceAlone(ctx context.Context, o *options, out io.Writer) error {
	q, closeAll, err := open(ctx, o, zksync.WithCapacity(o.capacity))
	if err != nil {
		return err
	}
	defer closeAll()
	var all, longest time.Duration
	return produce(ctx, q, o.produce, func(n int, took time.Duration) {
		all, longest = all+took, max(longest, took)
		if n == o.produce {
			fmt.Fprintf(out, "%d orders were put into %s in %s; one of them had to wait %s\n", n, o.path, short(all), short(longest))
		}
	})
}

// consumeAlone is a consumer as a process of its own. To be told to stop is how
// it ends.
func consumeAlone(ctx context.Context, o *options, stdin io.Reader, out io.Writer) error {
	stopped, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.untilEOF {
		go func() {
			io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	q, closeAll, err := open(stopped, o)
	if err != nil {
		return err
	}
	defer closeAll()
	w := &worker{id: o.id, takes: o.work, fails: o.fail, out: out}
	if o.byChan {
		err = receive(stopped, q, w.receive)
	} else {
		err = w.consume(stopped, q)
	}
	if stopped.Err() != nil {
		return nil
	}
	return err
}
