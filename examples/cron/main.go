// Command cron runs a task at regular times in exactly one of several
// processes, with take-over when that one goes.
//
//	go run ./examples/cron
//
// starts an embedded server and three nodes in this process, ends the leader's
// session half way through, and says at the end whether any slot was run twice.
// With -servers it is one node; start it on as many machines as you like:
//
//	go run ./examples/cron -servers zk1:2181,zk2:2181 -id node-1 -for 0
package main

import (
	"context"
	"errors"
	"flag"
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("cron", flag.ContinueOnError)
	fs.SetOutput(stderr)
	servers := fs.String("servers", "", "the ensemble as host:port,...; without it an embedded server and -nodes nodes are started")
	path := fs.String("path", "/cron/report", "where the nodes elect the one that runs the task")
	id := fs.String("id", "", "the name of this node, with -servers; the default is host and process")
	every := fs.Duration("every", 500*time.Millisecond, "how often the task runs")
	length := fs.Duration("for", 6*time.Second, "how long to go on; 0 is until interrupted")
	nodes := fs.Int("nodes", 3, "how many nodes to start, without -servers")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *every < time.Millisecond || *length < 0 || *nodes < 1 || fs.NArg() > 0 {
		fmt.Fprintf(stderr, "cron: -every %v is to be at least 1ms, -for %v at least 0, -nodes %d at least 1, and nothing may follow the flags (%q)\n",
			*every, *length, *nodes, fs.Args())
		return 2
	}
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	log := &journal{out: stdout, start: time.Now(), ran: make(map[int64][]string)}
	var err error
	if *servers != "" {
		err = node(ctx, *servers, *path, *id, *every, log, nil)
	} else {
		err = demonstrate(ctx, *path, *every, *length, *nodes, log)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "cron: %v\n", err)
		return 1
	}
	return log.verdict()
}

// demonstrate runs several nodes on a server of its own.
func demonstrate(ctx context.Context, path string, every, length time.Duration, nodes int, log *journal) error {
	srv, err := zkserver.New(zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer srv.Close()
	g, ctx := errgroup.WithContext(ctx)
	for i := range nodes {
		g.Go(func() error {
			return node(ctx, "127.0.0.1:2181", path, fmt.Sprintf("node-%d", i+1), every, log, srv)
		})
	}
	if length > 0 {
		g.Go(func() error { return accident(ctx, length/2, path, srv, log) })
	}
	return g.Wait()
}

// accident ends the session of the leader, as if its process had died.
func accident(ctx context.Context, after time.Duration, path string, srv *zkserver.Server, log *journal) error {
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

func node(ctx context.Context, servers, path, id string, every time.Duration, log *journal, srv *zkserver.Server) error {
	var opts []session.Option
	if srv != nil {
		opts = append(opts, session.WithDialer(srv.Dial), session.WithTimeout(time.Second))
	}
	m, err := session.Connect(ctx, servers, opts...)
	if err != nil {
		return err
	}
	defer m.Close()
	var named []zksync.ElectionOption
	if id != "" {
		named = append(named, zksync.WithID(id))
	} else {
		id = "this node"
	}
	j := &job{m: m, path: path + "/last", every: every, task: func(slot int64) { log.task(id, slot) }}
	return zksync.NewElection(m, path+"/nodes", named...).Run(ctx, func(ctx context.Context) error {
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
