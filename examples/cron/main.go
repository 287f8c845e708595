// Command cron runs a task at regular times in exactly one of several
// processes, with take-over when that one goes.
//
//	go run ./examples/cron
//
// starts an embedded server and three nodes in this process, ends the leader's
// session half way through, and says at the end whether any slot was run twice.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const path = "/cron/report" // the leader among the nodes runs the task

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, 500*time.Millisecond, 6*time.Second, os.Stdout, os.Stderr))
}

// run runs three nodes on a server of its own, and returns the exit status.
func run(ctx context.Context, every, length time.Duration, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	srv, err := zkserver.New(zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		fmt.Fprintln(stderr, "cron:", err)
		return 1
	}
	defer srv.Close()
	log := &journal{out: stdout, start: time.Now(), ran: make(map[int64][]string)}
	g, working := errgroup.WithContext(ctx)
	for i := range 3 {
		g.Go(func() error { return node(working, srv, fmt.Sprintf("node-%d", i+1), every, log) })
	}
	g.Go(func() error { return accident(working, length/2, srv, log) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, "cron:", err)
		return 1
	}
	return log.verdict()
}

// accident ends the session of the leader, as if its process had died.
func accident(ctx context.Context, after time.Duration, srv *zkserver.Server, log *journal) error {
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial))
	if err != nil {
		return err
	}
	defer m.Close()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(after):
	}
	leader, err := zksync.NewElection(m, path+"/nodes").Leader(ctx)
	if err != nil {
		return err
	}
	log.say("--", "the session of %s ends by force", leader.ID)
	return srv.ExpireSession(leader.Session)
}

func node(ctx context.Context, srv *zkserver.Server, id string, every time.Duration, log *journal) error {
	m, err := session.Connect(ctx, "127.0.0.1:2181", session.WithDialer(srv.Dial), session.WithTimeout(time.Second))
	if err != nil {
		return err
	}
	defer m.Close()
	j := &job{m: m, path: path + "/last", every: every, task: func(slot int64) { log.task(id, slot) }}
	return zksync.NewElection(m, path+"/nodes", zksync.WithID(id)).Run(ctx, func(ctx context.Context) error {
		token, _ := zksync.Token(ctx)
		log.say(id, "leads with token %d", token)
		defer func() { log.say(id, "leads no more: %v", context.Cause(ctx)) }()
		return j.lead(ctx)
	})
}

// A journal prints the lines of the nodes, and records the runs for the verdict.
type journal struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	ran   map[int64][]string // by slot
}

func (l *journal) say(who, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%6.2fs  %-10s %s\n", time.Since(l.start).Seconds(), who, fmt.Sprintf(format, args...))
}

func (l *journal) task(who string, slot int64) {
	l.mu.Lock()
	l.ran[slot] = append(l.ran[slot], who)
	l.mu.Unlock()
	l.say(who, "runs the task of slot %d", slot)
}

func (l *journal) verdict() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := 0
	for slot, who := range l.ran {
		if len(who) > 1 {
			fmt.Fprintf(l.out, "slot %d was run more than once: by %v\n", slot, who)
			status = 1
		}
	}
	if status == 0 {
		fmt.Fprintf(l.out, "%d slots were run, none of them twice\n", len(l.ran))
	}
	return status
}
