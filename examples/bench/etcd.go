package main

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// etcdLocks is etcd's concurrency package on a server of its own.
type etcdLocks struct {
	rowFuncs
	client   *clientv3.Client
	sessions []*concurrency.Session
}

func newEtcdLocks(endpoint string) (*etcdLocks, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	e := &etcdLocks{client: client}
	e.rowFuncs = rowFuncs{"lock": e.lock, "handover": e.handover, "turns": e.handover, "shared": e.shared, "election": e.election}
	return e, nil
}

func (e *etcdLocks) name() string { return etcd }

func (e *etcdLocks) close() error {
	var err error
	for _, s := range e.sessions {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, e.client.Close())
}

func (e *etcdLocks) connect(n int) ([]*concurrency.Session, error) {
	for len(e.sessions) < n {
		s, err := concurrency.NewSession(e.client, concurrency.WithTTL(int(sessionTimeout.Seconds())))
		if err != nil {
			return nil, err
		}
		e.sessions = append(e.sessions, s)
	}
	return e.sessions[:n], nil
}

func etcdAgain(ctx context.Context, mu *concurrency.Mutex, n int) error {
	for range n {
		if err := mu.Lock(ctx); err != nil {
			return err
		}
		if err := mu.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *etcdLocks) lock(ctx context.Context, j job) (sample, error) {
	all, err := e.connect(1)
	if err != nil {
		return sample{}, err
	}
	mu := concurrency.NewMutex(all[0], j.Path)
	return timed(j.Ops, func() error { return etcdAgain(ctx, mu, j.Ops) })
}

func (e *etcdLocks) handover(ctx context.Context, j job) (sample, error) {
	// One key a session: etcd's places are named after sessions, so that each
	// waiter needs its own.
	all, err := e.connect(j.Clients + 1)
	if err != nil {
		return sample{}, err
	}
	gate := concurrency.NewMutex(all[j.Clients], j.Path)
	if err := gate.Lock(ctx); err != nil {
		return sample{}, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range j.Clients {
		mu := concurrency.NewMutex(all[i], j.Path)
		g.Go(func() error { return etcdAgain(ctx, mu, j.Ops/j.Clients) })
	}
	for joined := 0; joined <= j.Clients; {
		got, err := e.client.Get(ctx, j.Path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return sample{}, errors.Join(err, gate.Unlock(context.WithoutCancel(ctx)))
		}
		joined = int(got.Count)
		time.Sleep(20 * time.Millisecond)
	}
	return timed(j.Ops, func() error { return errors.Join(gate.Unlock(ctx), g.Wait()) })
}

// shared has a local mutex before the one of etcd, since goroutines of one
// session would hold that at once.
func (e *etcdLocks) shared(ctx context.Context, j job) (sample, error) {
	all, err := e.connect(1)
	if err != nil {
		return sample{}, err
	}
	turn := make(chan struct{}, 1)
	return timed(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for range j.Clients {
			mu := concurrency.NewMutex(all[0], j.Path)
			g.Go(func() error {
				for range j.Ops / j.Clients {
					turn <- struct{}{}
					err := etcdAgain(ctx, mu, 1)
					<-turn
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	})
}

func (e *etcdLocks) election(ctx context.Context, j job) (sample, error) {
	all, err := e.connect(2)
	if err != nil {
		return sample{}, err
	}
	leader, next := concurrency.NewElection(all[0], j.Path), concurrency.NewElection(all[1], j.Path)
	if err := leader.Campaign(ctx, "a"); err != nil {
		return sample{}, err
	}
	total := sample{Ops: j.Ops}
	for range j.Ops {
		led := make(chan error, 1)
		go func() { led <- next.Campaign(ctx, "b") }()
		for joined := 0; joined < 2; {
			got, err := e.client.Get(ctx, j.Path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return sample{}, err
			}
			joined = int(got.Count)
			time.Sleep(5 * time.Millisecond)
		}
		s, err := timed(1, func() error {
			if err := leader.Resign(ctx); err != nil {
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
	return total, leader.Resign(ctx)
}
