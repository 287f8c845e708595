package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// toolkit is this library.
type toolkit struct {
	rowFuncs
	called   string
	servers  string
	opts     []session.Option
	meter    meter
	sessions []*session.Manager
}

func newToolkit(servers string) *toolkit {
	t := &toolkit{called: ours, servers: servers}
	t.rowFuncs = rowFuncs{
		"lock":     t.lock,
		"handover": func(ctx context.Context, j job) (sample, error) { return t.handover(ctx, j, false) },
		"turns":    func(ctx context.Context, j job) (sample, error) { return t.handover(ctx, j, true) },
		"shared":   t.shared,
		"linger":   t.linger,
		"put":      t.put,
		"deliver":  t.deliver,
		"election": t.election,
		"barrier":  t.barrier,
		"waiting":  t.waiting,

		"observer read":  t.observedRead,
		"observer lock":  t.observedLock,
		"observer queue": t.observedQueue,
	}
	return t
}

func (t *toolkit) name() string { return t.called }

func (t *toolkit) close() error {
	var err error
	for _, m := range t.sessions {
		err = errors.Join(err, m.Close())
	}
	t.sessions = nil
	return err
}

// connect returns n sessions, which stay open for later jobs.
func (t *toolkit) connect(ctx context.Context, n int) ([]*session.Manager, error) {
	for len(t.sessions) < n {
		opts := append([]session.Option{session.WithTimeout(sessionTimeout), session.WithDialer(t.meter.dial)}, t.opts...)
		m, err := session.Connect(ctx, t.servers, opts...)
		if err != nil {
			return nil, err
		}
		t.sessions = append(t.sessions, m)
	}
	return t.sessions[:n], nil
}

func (t *toolkit) one(ctx context.Context) (*session.Manager, error) {
	all, err := t.connect(ctx, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// again locks and unlocks n times.
func again(ctx context.Context, mu *zksync.Mutex, n int) error {
	for range n {
		if err := mu.Lock(ctx); err != nil {
			return err
		}
		if err := mu.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func (t *toolkit) lock(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	mu := zksync.NewMutex(m, j.Path)
	if err := again(ctx, mu, 1); err != nil { // makes the directory
		return sample{}, err
	}
	return t.metered(j.Ops, func() error { return again(ctx, mu, j.Ops) })
}

// metered is timed, with the requests of an operation.
func (t *toolkit) metered(ops int, fn func() error) (sample, error) {
	t.meter.reset()
	s, err := timed(ops, fn)
	s.Extra = map[string]float64{
		"requests": float64(t.meter.requests.Load()) / float64(ops),
		"reads":    float64(t.meter.reads.Load()) / float64(ops),
	}
	return s, err
}

// handover gives each waiter a place in line of its own, or, if shared, each
// session one Mutex for all its waiters, as a program would.
func (t *toolkit) handover(ctx context.Context, j job, shared bool) (sample, error) {
	all, err := t.connect(ctx, j.Sessions)
	if err != nil {
		return sample{}, err
	}
	gate := zksync.NewMutex(all[0], j.Path)
	if err := gate.Lock(ctx); err != nil {
		return sample{}, err
	}
	places := j.Clients
	if shared {
		places = min(j.Clients, len(all))
	}
	mutexes := make([]*zksync.Mutex, places)
	for i := range mutexes {
		mutexes[i] = zksync.NewMutex(all[i%len(all)], j.Path)
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range j.Clients {
		g.Go(func() error { return again(ctx, mutexes[i%places], j.Ops/j.Clients) })
	}
	if err := waitForChildren(ctx, all[0], j.Path, places+1); err != nil {
		return sample{}, errors.Join(err, gate.Unlock(), g.Wait())
	}
	return timed(j.Ops, func() error {
		if err := gate.Unlock(); err != nil {
			return err
		}
		return g.Wait()
	})
}

// waitForChildren returns when all have joined the line.
func waitForChildren(ctx context.Context, m *session.Manager, path string, n int) error {
	return m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		for {
			_, stat, err := s.Get(ctx, path)
			if err != nil {
				return err
			}
			if int(stat.NumChildren) >= n {
				return nil
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%d of %d have joined the line: %w", stat.NumChildren, n, context.Cause(ctx))
			}
		}
	})
}

func (t *toolkit) shared(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	mu := zksync.NewMutex(m, j.Path)
	return t.metered(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for range j.Clients {
			g.Go(func() error { return again(ctx, mu, j.Ops/j.Clients) })
		}
		return g.Wait()
	})
}

func (t *toolkit) linger(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	mu := zksync.NewMutex(m, j.Path, zksync.WithLinger(time.Second))
	// The first Unlock arms the lingering hold in the background.
	if err := again(ctx, mu, 1); err != nil {
		return sample{}, err
	}
	t.rest()
	return t.metered(j.Ops, func() error { return again(ctx, mu, j.Ops) })
}

// rest waits until nothing goes to the servers or comes from them.
func (t *toolkit) rest() {
	seen := t.meter.bytes.Load()
	for quiet := 0; quiet < 5; quiet++ {
		time.Sleep(10 * time.Millisecond)
		if now := t.meter.bytes.Load(); now != seen {
			seen, quiet = now, 0
		}
	}
}

func (t *toolkit) election(ctx context.Context, j job) (sample, error) {
	all, err := t.connect(ctx, 2)
	if err != nil {
		return sample{}, err
	}
	leader := zksync.NewElection(all[0], j.Path, zksync.WithID("a"))
	next := zksync.NewElection(all[1], j.Path, zksync.WithID("b"))
	if _, err := leader.Campaign(ctx); err != nil {
		return sample{}, err
	}
	total := sample{Ops: j.Ops}
	for range j.Ops {
		led := make(chan error, 1)
		go func() {
			_, err := next.Campaign(ctx)
			led <- err
		}()
		if err := waitForChildren(ctx, all[0], j.Path, 2); err != nil {
			return sample{}, err
		}
		s, err := timed(1, func() error {
			if err := leader.Resign(); err != nil {
				return err
			}
			return <-led
		})
		if err != nil {
			return sample{}, err
		}
		total.Elapsed += s.Elapsed
		leader, next = next, leader
	}
	return total, leader.Resign()
}

func (t *toolkit) barrier(ctx context.Context, j job) (sample, error) {
	all, err := t.connect(ctx, j.Sessions)
	if err != nil {
		return sample{}, err
	}
	t.meter.reset()
	s, err := timed(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for i := range j.Clients {
			b := zksync.NewDoubleBarrier(all[i%len(all)], j.Path, j.Clients)
			g.Go(func() error {
				if err := b.Enter(ctx); err != nil {
					return err
				}
				return b.Leave(ctx)
			})
		}
		return g.Wait()
	})
	s.Extra = map[string]float64{"bytes": float64(t.meter.bytes.Load()) / float64(j.Clients)}
	return s, err
}

// waiting measures the heap of this process while Clients wait for a lock.
func (t *toolkit) waiting(ctx context.Context, j job) (sample, error) {
	all, err := t.connect(ctx, j.Sessions)
	if err != nil {
		return sample{}, err
	}
	gate := zksync.NewMutex(all[0], j.Path)
	if err := gate.Lock(ctx); err != nil {
		return sample{}, err
	}
	before := heap()
	g, waitCtx := errgroup.WithContext(ctx)
	for i := range j.Clients {
		mu := zksync.NewMutex(all[i%len(all)], j.Path)
		g.Go(func() error { return again(waitCtx, mu, 1) })
	}
	if err := waitForChildren(ctx, all[0], j.Path, j.Clients+1); err != nil {
		return sample{}, err
	}
	per := float64(settledHeap()-before) / float64(j.Clients)
	s, err := timed(j.Ops, func() error { return errors.Join(gate.Unlock(), g.Wait()) })
	s.Extra = map[string]float64{"heap": per}
	return s, err
}

// heap returns the size of the live heap.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// settledHeap returns the size of the live heap when nothing more becomes free:
// contenders that have just joined a line still hold a listing of it.
func settledHeap() int64 {
	least := heap()
	for same := 0; same < 5; same++ {
		time.Sleep(10 * time.Millisecond)
		if now := heap(); now < least-least/100 {
			least, same = now, 0
		}
	}
	return least
}

// deleteAll removes the znodes of a job at path, in batches and to any depth.
func deleteAll(ctx context.Context, s *session.Session, path string) error {
	names, _, err := s.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	} else if err != nil {
		return err
	}
	var ops []any
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := s.Multi(ctx, ops...)
		ops = nil
		return err
	}
	for _, name := range names {
		ops = append(ops, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
		if len(ops) == 1000 {
			if err := flush(); err != nil {
				break
			}
		}
	}
	if err := flush(); err != nil { // one has children, or has gone
		for _, name := range names {
			if err := deleteAll(ctx, s, path+"/"+name); err != nil {
				return err
			}
		}
	}
	if err := s.Delete(ctx, path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}
