package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// sessionTimeout is every contender's.
const sessionTimeout = 30 * time.Second

// connectStock opens a session of go-zookeeper and waits for it.
func connectStock(servers string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), sessionTimeout, zk.WithLogger(quiet{}), zk.WithMaxBufferSize(64<<20))
	if err != nil {
		return nil, err
	}
	patience := time.After(30 * time.Second)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn, nil
			}
		case <-patience:
			conn.Close()
			return nil, fmt.Errorf("no session at %s after 30 s", servers)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func makeParents(conn *zk.Conn, path string) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		_, err := conn.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path[:i], err)
		}
	}
	return nil
}

// stockSessions stay open for later jobs.
type stockSessions struct {
	servers string
	conns   []*zk.Conn
}

func (s *stockSessions) close() error {
	for _, c := range s.conns {
		c.Close()
	}
	return nil
}

func (s *stockSessions) connect(n int) ([]*zk.Conn, error) {
	for len(s.conns) < n {
		c, err := connectStock(s.servers)
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, c)
	}
	return s.conns[:n], nil
}

// joined returns when n places are in a line.
func joined(ctx context.Context, conn *zk.Conn, path string, n int) error {
	for {
		_, stat, err := conn.Get(path)
		switch {
		case err != nil:
			return err
		case int(stat.NumChildren) >= n:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stock is go-zookeeper's Lock.
type stock struct {
	rowFuncs
	*stockSessions
}

func newStock(servers string) *stock {
	s := &stock{stockSessions: &stockSessions{servers: servers}}
	s.rowFuncs = rowFuncs{"lock": s.lock, "handover": s.handover, "turns": s.handover, "shared": s.shared, "waiting": s.waiting}
	return s
}

func (s *stock) name() string { return goZK }

func (s *stock) again(ctx context.Context, conn *zk.Conn, path string, n int) error {
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
		if err := lock.Lock(); err != nil {
			return err
		}
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func (s *stock) lock(ctx context.Context, j job) (sample, error) {
	conns, err := s.connect(1)
	if err != nil {
		return sample{}, err
	}
	if err := s.again(ctx, conns[0], j.Path, 1); err != nil {
		return sample{}, err
	}
	return timed(j.Ops, func() error { return s.again(ctx, conns[0], j.Path, j.Ops) })
}

// contend has Clients goroutines lock behind a gate, and calls waiting when
// all are in line.
func (s *stock) contend(ctx context.Context, j job, waiting func()) (sample, error) {
	conns, err := s.connect(j.Sessions)
	if err != nil {
		return sample{}, err
	}
	gate := zk.NewLock(conns[0], j.Path, zk.WorldACL(zk.PermAll))
	if err := gate.Lock(); err != nil {
		return sample{}, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range j.Clients {
		g.Go(func() error { return s.again(ctx, conns[i%len(conns)], j.Path, j.Ops/j.Clients) })
	}
	if err := joined(ctx, conns[0], j.Path, j.Clients+1); err != nil {
		return sample{}, errors.Join(err, gate.Unlock())
	}
	waiting()
	return timed(j.Ops, func() error { return errors.Join(gate.Unlock(), g.Wait()) })
}

func (s *stock) handover(ctx context.Context, j job) (sample, error) {
	return s.contend(ctx, j, func() {})
}

func (s *stock) waiting(ctx context.Context, j job) (sample, error) {
	if _, err := s.connect(j.Sessions); err != nil {
		return sample{}, err
	}
	before := heap()
	var per float64
	r, err := s.contend(ctx, j, func() { per = float64(settledHeap()-before) / float64(j.Clients) })
	r.Extra = map[string]float64{"heap": per}
	return r, err
}

func (s *stock) shared(ctx context.Context, j job) (sample, error) {
	conns, err := s.connect(1)
	if err != nil {
		return sample{}, err
	}
	return timed(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for range j.Clients {
			g.Go(func() error { return s.again(ctx, conns[0], j.Path, j.Ops/j.Clients) })
		}
		return g.Wait()
	})
}
