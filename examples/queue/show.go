package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const (
	// victim is the consumer that is killed, and lastOrder which one of the orders
	// that it receives is its last.
	victim    = 1
	lastOrder = 3

	// patience is how long a consumer may take to stop.
	patience = 15 * time.Second
)

var errDoesNotAddUp = errors.New("it does not add up")

// A stage is where all of it is shown.
type stage struct {
	*options
	q    *zksync.Queue
	book *ledger
	out  *timeline
}

// show runs a producer here and consumers in processes of their own, kills one of
// them, and accounts for every order.
func show(ctx context.Context, o *options, stdout io.Writer) error {
	on := o.servers
	if o.servers == "" {
		srv, err := zkserver.New(zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
		if err != nil {
			return err
		}
		defer srv.Close()
		addr, err := srv.Listen("127.0.0.1:0")
		if err != nil {
			return err
		}
		o.servers, on = addr.String(), "an embedded server"
	}
	q, closeAll, err := open(ctx, o, zksync.WithCapacity(o.capacity))
	if err != nil {
		return err
	}
	defer closeAll()
	var names []string
	for i := range o.consumers {
		names = append(names, fmt.Sprint("c", i+1))
	}
	st := &stage{options: o, q: q, book: newLedger(o.orders, names), out: newTimeline(stdout, names)}
	if n, err := q.Len(ctx); err != nil {
		return err
	} else if n > 0 {
		return fmt.Errorf("%s holds messages from before (%d): consume them with -consume, or take another -path", o.path, n)
	}
	fmt.Fprintf(stdout, "%d orders go through %s to %d processes, on %s.\n", o.orders, o.path, o.consumers, on)
	fmt.Fprintf(stdout, "In the lanes: the order in hand, X for dead; >>> is what we do to them.\n\n")
	st.out.begin()
	if err := st.run(ctx); err != nil {
		return err
	}
	left, err := q.Len(ctx)
	if err != nil {
		return err
	}
	if !st.book.print(stdout, left) {
		return errDoesNotAddUp
	}
	return nil
}

func (st *stage) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	working, over := context.WithCancel(ctx)
	defer over()
	full := make(chan struct{})
	g.Go(func() error {
		defer over() // nothing is left to do, or nobody to do it for
		if err := produce(ctx, st.q, st.orders, func(order int, took time.Duration) {
			switch order {
			case st.capacity + 1:
				st.out.say("producer", "put order %d, which had to wait %s for room", order, short(took))
			case min(st.capacity, st.orders):
				st.out.say("producer", "has put %d orders, and the queue takes no more than %d", order, st.capacity)
				close(full)
			}
		}); err != nil {
			return err
		}
		st.out.say("producer", "has put the last order")
		return st.drained(ctx)
	})
	for i, id := range st.book.names {
		g.Go(func() error {
			select {
			case <-full:
				return st.consumer(working, i, id)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	return g.Wait()
}

// drained waits until the queue is empty. Orders that somebody has in hand are
// still in it.
func (st *stage) drained(ctx context.Context) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		n, err := st.q.Len(ctx)
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// consumer runs this program again, as a consumer, until ctx ends, and enters its
// lines into the book.
func (st *stage) consumer(ctx context.Context, i int, id string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-servers", st.servers, "-path", st.path, "-timeout", st.timeout.String(),
		"-consume", "-id", id, "-until-eof", "-work", st.work.String(), "-fail", fmt.Sprint(st.fail))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// The end of its input tells the consumer to stop, even if this process crashes.
	cmd.Cancel, cmd.WaitDelay = stdin.Close, patience
	if err := cmd.Start(); err != nil {
		return err
	}
	killed := false
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		e := st.enter(i, lines.Text())
		if i == victim && e.what == received && e.count == lastOrder {
			st.out.fault(i, "kill -9 %s, which has order %d in hand", id, e.order)
			st.book.kill(i)
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return err
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed && !cmd.ProcessState.Success() {
		return fmt.Errorf("the consumer %s failed: %w\n%s", id, err, strings.TrimSpace(errs.String()))
	}
	return nil
}

// enter writes a line of a consumer into the book, and shows it if it is
// remarkable.
func (st *stage) enter(i int, line string) event {
	id := st.book.names[i]
	e, ok := st.book.enter(i, line)
	if !ok {
		st.out.say(id, "says %q, and we have no such order", line)
		return e
	}
	switch e.what {
	case received:
		st.out.hand(i, e.order)
		if before := e.before; before != nil && before.dead {
			st.out.say(id, "receives order %d, which %s died with %s ago", e.order, before.name, short(before.ago))
		} else if before != nil && before.name == id {
			st.out.say(id, "receives order %d again", e.order)
		} else if before != nil {
			st.out.say(id, "receives order %d, which %s had before", e.order, before.name)
		} else if e.count == 1 {
			st.out.say(id, "receives order %d, its first", e.order)
		}
	case returned:
		st.out.say(id, "gives order %d back, undone", e.order)
		st.out.hand(i, 0)
	case lost:
		st.out.say(id, "lost its session, and order %d with it", e.order)
		st.out.hand(i, 0)
	default:
		st.out.hand(i, 0)
	}
	return e
}
