// Package realzk runs Apache ZooKeeper servers as child processes, joined to
// each other and to their clients by links that can be broken.
package realzk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/internal/proxy"
)

// ErrClosed is the cause of calls that end because the cluster was closed.
var ErrClosed = errors.New("the servers were stopped")

// leaderPatience is how long a follower's connection may wait for a new leader
// to listen. By itself a follower dials again some times; a connection that
// ends instead sends it back into the election, and leaves the leader waiting
// for it until initLimit is over.
const leaderPatience = 500 * time.Millisecond

// killTimeout bounds how long Close waits for one process to go.
const killTimeout = 10 * time.Second

// pair names the links from one server to another.
type pair struct{ from, to int }

// Cluster is one or three servers. Its methods may be called from any goroutine;
// methods that change the same server take turns.
type Cluster struct {
	config  Config
	runtime Runtime
	servers []*server
	peers   map[pair]peerLinks
	ctx     context.Context // done when the cluster closes
	cancel  context.CancelCauseFunc

	mu     sync.Mutex
	cut    map[pair]bool // lower number first
	fronts map[*Front]struct{}
}

// Start starts the servers and waits until all serve. If that fails nothing
// is left running, and the error ends with the logs.
func Start(ctx context.Context, rt Runtime, config Config) (*Cluster, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Cluster{
		config:  config,
		runtime: rt,
		peers:   make(map[pair]peerLinks),
		cut:     make(map[pair]bool),
		fronts:  make(map[*Front]struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if err := c.open(ctx); err != nil {
		var logs strings.Builder
		for i := range c.servers {
			fmt.Fprintf(&logs, "\n--- server %d ---\n%s", i+1, c.LogTail(i+1))
		}
		return nil, fmt.Errorf("%w%s", errors.Join(err, c.Close()), logs.String())
	}
	return c, nil
}

func (c *Cluster) open(ctx context.Context) error {
	for id := 1; id <= c.config.Servers; id++ {
		s := &server{
			cluster: c,
			id:      id,
			dir:     filepath.Join(c.config.Dir, fmt.Sprintf("server%d", id)),
			turn:    make(chan struct{}, 1),
			wanted:  true, // each counts on the others from the beginning
		}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return fmt.Errorf("make a directory for server %d: %w", id, err)
		}
		c.servers = append(c.servers, s)
	}
	if err := c.openPeers(); err != nil {
		return err
	}
	if c.config.TLS {
		if err := writeKeys(c.config.Dir); err != nil {
			return err
		}
	}
	errs := make([]error, len(c.servers))
	var wg sync.WaitGroup
	for i := range c.servers {
		wg.Go(func() { errs[i] = c.Start(ctx, i+1) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

// Close kills the servers, closes all links, and waits until nothing is left.
func (c *Cluster) Close() error {
	c.cancel(ErrClosed)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	var errs []error
	for _, s := range c.servers {
		if err := s.acquire(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, s.kill(ctx))
		s.mu.Lock()
		releasePorts(s.ports.list()...)
		s.mu.Unlock()
		s.release()
	}
	for _, links := range c.peers {
		for _, link := range links.list() {
			errs = append(errs, link.Close())
		}
	}
	c.mu.Lock()
	var fronts []*Front
	for front := range c.fronts {
		fronts = append(fronts, front)
	}
	c.mu.Unlock()
	for _, front := range fronts {
		errs = append(errs, front.Close())
	}
	return errors.Join(errs...)
}

// Closed reports whether Close was called.
func (c *Cluster) Closed() bool { return c.ctx.Err() != nil }

// Size returns the number of servers.
func (c *Cluster) Size() int { return len(c.servers) }

func (c *Cluster) server(i int) (*server, error) {
	if i < 1 || i > len(c.servers) {
		return nil, fmt.Errorf("there is no server %d: they are numbered from 1 to %d", i, len(c.servers))
	}
	return c.servers[i-1], nil
}

// change runs fn for server i when its turn has come.
func (c *Cluster) change(ctx context.Context, i int, fn func(context.Context, *server) error) error {
	s, err := c.server(i)
	if err != nil {
		return err
	}
	ctx, stop := c.bound(ctx)
	defer stop()
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	if c.Closed() {
		return ErrClosed
	}
	return fn(ctx, s)
}

// bound ends ctx when the cluster closes, too.
func (c *Cluster) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Start starts server i, or, if it runs, waits until it serves.
func (c *Cluster) Start(ctx context.Context, i int) error {
	return c.change(ctx, i, func(ctx context.Context, s *server) error {
		proc, paused := s.state()
		switch {
		case paused:
			return fmt.Errorf("start server %d: it is paused, not stopped", i)
		case proc == nil:
			return s.start(ctx)
		}
		return poll(ctx, fmt.Sprintf("server %d to serve", i), func(ctx context.Context) (bool, error) {
			status, err := askStatus(ctx, s.addr())
			return err == nil && (status.Serving() || !c.canServe(s)), nil
		})
	})
}

// Kill kills server i, unless it does not run anyway, and waits until it is gone.
func (c *Cluster) Kill(ctx context.Context, i int) error {
	return c.change(ctx, i, func(ctx context.Context, s *server) error { return s.kill(ctx) })
}

// Restart kills server i and starts it again over the same data.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	return c.change(ctx, i, func(ctx context.Context, s *server) error {
		if err := s.kill(ctx); err != nil {
			return err
		}
		return s.start(ctx)
	})
}

// Pause stops server i where it stands.
func (c *Cluster) Pause(ctx context.Context, i int) error {
	return c.change(ctx, i, func(ctx context.Context, s *server) error { return s.pause(ctx) })
}

// Resume lets a paused server i go on, and waits until it answers.
func (c *Cluster) Resume(ctx context.Context, i int) error {
	return c.change(ctx, i, func(ctx context.Context, s *server) error { return s.resume(ctx) })
}

// Addr returns the address on which server i itself listens for clients.
func (c *Cluster) Addr(i int) (string, error) {
	s, err := c.server(i)
	if err != nil {
		return "", err
	}
	return s.addr(), nil
}

// Log returns the whole log of server i, over all its processes.
func (c *Cluster) Log(i int) (string, error) {
	s, err := c.server(i)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(s.logPath())
	if err != nil {
		return "", fmt.Errorf("log of server %d: %w", i, err)
	}
	return string(data), nil
}

// tailLines is how much of a log a failure shows.
const tailLines = 40

// LogTail returns the last lines of the log of server i, or why there are none.
func (c *Cluster) LogTail(i int) string {
	log, err := c.Log(i)
	if err != nil {
		return err.Error() + "\n"
	}
	lines := strings.SplitAfter(log, "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines-1):], "")
}

// openPeers opens the links between servers.
func (c *Cluster) openPeers() error {
	for _, from := range c.servers {
		for _, to := range c.servers {
			if from == to {
				continue
			}
			back := pair{to.id, from.id}
			rewrite := electionRewriter(func() string { return c.peers[back].election.Addr() })
			quorum, err := proxy.Listen("", proxy.WithPatience(leaderPatience))
			if err != nil {
				return err
			}
			links := peerLinks{quorum: quorum}
			links.election, err = proxy.Listen("", proxy.WithRewriter(rewrite))
			if err != nil {
				return errors.Join(err, quorum.Close())
			}
			c.peers[pair{from.id, to.id}] = links
		}
	}
	return nil
}
