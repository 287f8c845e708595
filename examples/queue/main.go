// Queue lets three processes work on orders, kills one of them with -9 while it has an
// order in hand, and accounts for every order at the end.
//
//	go run ./examples/queue
//
// It starts a server, and three consumers as processes. The producer waits while the
// queue is full. A consumer gives an order back when the work on it fails. Another
// consumer gets the order that the killed one had in hand. The exit status is 0 if each
// order was acknowledged exactly once, and 1 if not.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	path     = "/queues/orders"
	orders   = 100
	capacity = 20                    // the producer waits while so many orders are in the queue
	takes    = 20 * time.Millisecond // the work on an order
	timeout  = 2 * time.Second       // of a session: how soon the orders of a dead consumer go to others
	victim   = 1                     // is killed when it has received its tenth order

	// The reports of a consumer about an order.
	received     = "received"
	acknowledged = "acknowledged" // the work is done, and no consumer gets the order again
	returned     = "returned"     // the work has failed, and a consumer gets the order again
	lost         = "lost"         // the session was lost, or Close has given the order back
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := func() error { return show(ctx, os.Stdout) }
	if len(os.Args) == 3 && os.Args[1] == "consume" {
		run = func() error { return consume(ctx, os.Args[2], os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// consume works on orders until its input ends, and reports the result of each.
func consume(ctx context.Context, server string, stdin io.Reader, out io.Writer) error {
	m, err := session.Connect(ctx, server, session.WithTimeout(timeout))
	if err != nil {
		return err
	}
	defer m.Close()
	q := zksync.NewQueue(m, path)
	defer q.Close() // gives back the orders that were not received
	go func() { io.Copy(io.Discard, stdin); q.Close() }()
	for msg := range q.Messages() {
		fmt.Fprintf(out, "%s %s\n", received, msg.Data)
		time.Sleep(takes)
		what, settle := acknowledged, msg.Ack
		if msg.Attempts == 1 && strings.HasSuffix(string(msg.Data), "0") { // the work fails
			what, settle = returned, msg.Nack
		}
		if err := settle(ctx); errors.Is(err, zksync.ErrLost) {
			what = lost
		} else if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", what, msg.Data)
	}
	if err := q.Err(); !errors.Is(err, zksync.ErrQueueClosed) {
		return err
	}
	return nil
}

// show produces orders, starts three consumers, and prints the balance.
func show(ctx context.Context, out io.Writer) error {
	srv, err := zkserver.New(zkserver.Config{TickTime: timeout / 10, MinSessionTimeout: timeout})
	if err != nil {
		return err
	}
	defer srv.Close()
	address, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	m, err := session.Connect(ctx, address.String())
	if err != nil {
		return err
	}
	defer m.Close()
	q := zksync.NewQueue(m, path, zksync.WithCapacity(capacity))
	defer q.Close()

	l := &ledger{out: out, acks: make(map[string]int)}
	g, ctx := errgroup.WithContext(ctx)
	stdin, stop, err := os.Pipe() // the consumers stop when it is closed, also if this process dies
	if err != nil {
		return err
	}
	defer stdin.Close()
	for c := range l.received {
		g.Go(func() error { return l.follow(ctx, c, stdin, address.String()) })
	}
	for n := 1; n <= orders && err == nil; n++ {
		began := time.Now()
		err = q.Put(ctx, fmt.Appendf(nil, "order-%d", n))
		if n == capacity+1 {
			fmt.Fprintf(l.out, "order-%d had to wait %v for room\n", n, time.Since(began).Round(time.Millisecond))
		}
	}
	for left := 1; left > 0 && err == nil; {
		left, err = q.Len(ctx)
	}
	stop.Close()
	return errors.Join(err, g.Wait(), l.verdict())
}

// follow runs a consumer and enters its reports.
func (l *ledger) follow(ctx context.Context, c int, stdin *os.File, server string) error {
	cmd := exec.CommandContext(ctx, os.Args[0], "consume", server)
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		what, order, _ := strings.Cut(lines.Text(), " ")
		if l.enter(c, what, order) {
			cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err != nil && c != victim {
		return fmt.Errorf("consumer %d: %w", c, err)
	}
	return nil
}

// A ledger has the reports of the consumers.
type ledger struct {
	mu       sync.Mutex
	out      io.Writer
	received [3]int         // by consumer
	acks     map[string]int // by order
	inHand   string         // the order that the victim died with
}

// enter adds a report of a consumer, and tells whether to kill the consumer now.
func (l *ledger) enter(consumer int, what, order string) (kill bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch what {
	case acknowledged:
		l.acks[order]++
	case received:
		l.received[consumer]++
		if order == l.inHand {
			fmt.Fprintf(l.out, "consumer %d receives %s, which consumer %d died with\n", consumer, order, victim)
		}
		if kill = consumer == victim && l.received[victim] == 10 && l.inHand == ""; kill {
			fmt.Fprintf(l.out, "kill -9 consumer %d, which has %s in hand\n", consumer, order)
			l.inHand = order
		}
	default:
		fmt.Fprintf(l.out, "consumer %d has %s %s\n", consumer, what, order)
	}
	return kill
}

// verdict checks that each order was acknowledged once. The victim may have died before its last report.
func (l *ledger) verdict() error {
	for n := 1; n <= orders; n++ {
		order := fmt.Sprintf("order-%d", n)
		if acks := l.acks[order]; acks != 1 && !(acks == 0 && order == l.inHand) {
			return fmt.Errorf("%s was acknowledged %d times", order, acks)
		}
	}
	if l.inHand == "" {
		return fmt.Errorf("no consumer was killed: consumer %d received only %d orders", victim, l.received[victim])
	}
	fmt.Fprintf(l.out, "The consumers received %v orders.\nOK: each of %d orders was acknowledged exactly once.\n", l.received, orders)
	return nil
}
