// Queue has orders worked on by three processes, kills one of them with -9 while it has
// an order in hand, and accounts for every order at the end.
//
//	go run ./examples/queue
//
// It starts a server on a loopback address, a producer in this process, and three
// consumers that are processes of their own. The producer waits while the queue is
// full. A consumer acknowledges an order when the work is done, and gives the order back
// when the work fails. The order that the killed consumer had in hand goes to another.
//
// The exit status is 0 if each order was acknowledged exactly once, and 1 if not.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
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
	timeout  = time.Second           // of a session: how soon the orders of a dead consumer go to others
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "consume" {
		err = consume(ctx, os.Args[2], os.Stdin, os.Stdout)
	} else {
		err = show(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "queue:", err)
		os.Exit(1)
	}
}

// consume works on orders until its input ends, and reports what becomes of each.
// Orders that it does not acknowledge, for example because it is killed, go to other
// consumers.
func consume(ctx context.Context, server string, stdin io.Reader, out io.Writer) error {
	m, err := session.Connect(ctx, server, session.WithTimeout(timeout))
	if err != nil {
		return err
	}
	defer m.Close()
	q := zksync.NewQueue(m, path)
	defer q.Close() // gives the orders back that were not received
	go func() {
		io.Copy(io.Discard, stdin)
		q.Close()
	}()
	tried := make(map[string]bool)
	for msg := range q.Messages() {
		order := string(msg.Data)
		fmt.Fprintln(out, received, order)
		time.Sleep(takes)
		what, settle := acknowledged, msg.Ack
		if strings.HasSuffix(order, "0") && !tried[order] { // the work fails
			tried[order] = true
			what, settle = returned, msg.Nack
		}
		switch err := settle(ctx); {
		case errors.Is(err, zksync.ErrQueueClosed):
			what = returned // by Close
		case errors.Is(err, zksync.ErrLost):
			what = lost
		case err != nil:
			return err
		}
		fmt.Fprintln(out, what, order)
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
	defer stop.Close()
	for c := range l.received {
		g.Go(func() error { return l.follow(ctx, c, stdin, address.String()) })
	}
	for n := 1; n <= orders && err == nil; n++ {
		began := time.Now()
		err = q.Put(ctx, fmt.Appendf(nil, "order-%d", n))
		if n == capacity+1 {
			l.say("order-%d had to wait %v for room", n, time.Since(began).Round(time.Millisecond))
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
