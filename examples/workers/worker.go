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
	m      *session.Manager
	path   string
	id     string
	shards int
	board  *board
}

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	group := zksync.NewGroup(w.m, w.path+"/members", zksync.WithIDWait())
	me, err := group.Join(ctx, w.id, nil)
	if err != nil {
		return err
	}
	// One leaves before it stops, so that the others need not wait for that.
	defer me.Leave()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		working := make(map[int]*task)
		defer func() {
			for _, t := range working {
				t.end()
			}
		}()
		for members, err := range group.Watch(ctx).All() {
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err // the Manager was closed, or the members may not be read
			}
			w.reshare(ctx, g, working, members)
		}
		return nil
	})
	return g.Wait()
}

// reshare ends the tasks of shards that are no longer ours, and starts tasks for the
// new ones.
func (w *worker) reshare(ctx context.Context, g *errgroup.Group, working map[int]*task, members []zksync.Member) {
	var ids []string
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	mine := make(map[int]bool)
	for _, shard := range share(ids, w.id, w.shards) {
		mine[shard] = true
	}
	for shard, t := range working {
		if !mine[shard] {
			t.end()
			delete(working, shard)
		}
	}
	for shard := range mine {
		if working[shard] == nil {
			t := newTask(ctx)
			working[shard] = t
			g.Go(func() error { return w.work(t, shard) })
		}
	}
}

// A task is the work on one shard for as long as it is ours.
type task struct {
	ctx  context.Context
	done context.CancelFunc
}

func newTask(ctx context.Context) *task {
	t := &task{}
	t.ctx, t.done = context.WithCancel(ctx)
	return t
}

func (t *task) end() { t.done() }

// work waits until the last owner of the shard has released it, and works on it.
func (w *worker) work(t *task, shard int) error {
	mu := zksync.NewMutex(w.m, fmt.Sprintf("%s/shards/%d", w.path, shard))
	for t.ctx.Err() == nil {
		err := mu.Do(t.ctx, func(ctx context.Context) error {
			w.board.took(w.id, shard)
			defer w.board.left(w.id, shard)
			<-ctx.Done() // this is where a real worker would work
			return nil
		})
		if err != nil && t.ctx.Err() == nil && (!errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrClosed)) {
			return err
		}
	}
	return nil
}
