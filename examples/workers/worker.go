package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A worker is a member that works on its share of the shards.
type worker struct {
	m     *session.Manager
	id    string
	board *board
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	group := zksync.NewGroup(w.m, path+"/members", zksync.WithIDWait())
	me, err := group.Join(ctx, w.id, nil)
	if err != nil {
		return err
	}
	// One leaves before it stops, so that the others need not wait for that.
	defer me.Leave()

	g, ctx := errgroup.WithContext(ctx)
	working := make(map[int]context.CancelFunc)
	g.Go(func() error {
		for members, err := range group.Watch(ctx).All() {
			if err != nil { // ctx has ended, the Manager was closed, or the members may not be read
				return err // which ends the work on all shards
			}
			w.reshare(ctx, g, working, members)
		}
		return nil
	})
	return g.Wait()
}

// reshare ends the tasks of shards that are no longer ours, and starts tasks for the
// new ones.
func (w *worker) reshare(ctx context.Context, g *errgroup.Group, working map[int]context.CancelFunc, members []zksync.Member) {
	var ids []string
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	mine := make(map[int]bool)
	for _, shard := range share(ids, w.id, shards) {
		mine[shard] = true
	}
	for shard, end := range working {
		if !mine[shard] {
			end()
			delete(working, shard)
		}
	}
	for shard := range mine {
		if working[shard] == nil {
			held, end := context.WithCancel(ctx)
			working[shard] = end
			g.Go(func() error { return w.work(held, shard) })
		}
	}
}

// work waits until the last owner of the shard has released it, and works on it.
func (w *worker) work(ctx context.Context, shard int) error {
	mu := zksync.NewMutex(w.m, fmt.Sprintf("%s/shards/%d", path, shard))
	for ctx.Err() == nil {
		err := mu.Do(ctx, func(ctx context.Context) error {
			w.board.took(w.id, shard)
			defer w.board.left(w.id, shard)
			<-ctx.Done() // this is where a real worker would work
			return nil
		})
		if err != nil && ctx.Err() == nil && (!errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrClosed)) {
			return err
		}
	}
	return nil
}
