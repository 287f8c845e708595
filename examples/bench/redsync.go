package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// redisLocks is redsync on one Redis server, which keeps nothing on disk: a
// lock that is forgotten when that server is.
type redisLocks struct {
	rowFuncs
	client *goredislib.Client
	sync   *redsync.Redsync
}

func newRedisLocks(address string) *redisLocks {
	client := goredislib.NewClient(&goredislib.Options{Addr: address})
	r := &redisLocks{client: client, sync: redsync.New(goredis.NewPool(client))}
	r.rowFuncs = rowFuncs{"lock": r.lock, "handover": r.handover, "turns": r.handover, "shared": r.shared}
	return r
}

func (r *redisLocks) name() string { return redis }

func (r *redisLocks) close() error { return r.client.Close() }

func (r *redisLocks) again(ctx context.Context, path string, n int) error {
	// redsync polls: a retry every 10 ms is already more eager than its default.
	mu := r.sync.NewMutex(path, redsync.WithExpiry(sessionTimeout), redsync.WithTries(1<<20), redsync.WithRetryDelay(10*time.Millisecond))
	for range n {
		if err := mu.LockContext(ctx); err != nil {
			return err
		}
		if _, err := mu.UnlockContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *redisLocks) lock(ctx context.Context, j job) (sample, error) {
	return timed(j.Ops, func() error { return r.again(ctx, j.Path, j.Ops) })
}

func (r *redisLocks) handover(ctx context.Context, j job) (sample, error) {
	gate := r.sync.NewMutex(j.Path, redsync.WithExpiry(sessionTimeout))
	if err := gate.LockContext(ctx); err != nil {
		return sample{}, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for range j.Clients {
		g.Go(func() error { return r.again(ctx, j.Path, j.Ops/j.Clients) })
	}
	return timed(j.Ops, func() error {
		if _, err := gate.UnlockContext(ctx); err != nil {
			return err
		}
		return g.Wait()
	})
}

func (r *redisLocks) shared(ctx context.Context, j job) (sample, error) {
	return timed(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for range j.Clients {
			g.Go(func() error { return r.again(ctx, j.Path, j.Ops/j.Clients) })
		}
		return g.Wait()
	})
}
