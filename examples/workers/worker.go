package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// join makes this process a member that works on its share of the shards until ctx ends.
func join(ctx context.Context, m *session.Manager, id string, b *board) error {
	group := zksync.NewGroup(m, path+"/members", zksync.WithIDWait())
	me, err := group.Join(ctx, id, nil)
	if err != nil {
		return err
	}
	defer me.Leave() // before the session ends, so that the other members need not wait for that
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		working := make(map[int]context.CancelFunc)
		for members, err := range group.Watch(ctx).All() {
			if err != nil { // ctx has ended, the Manager was closed, or the members may not be read
				return err // which ends the work on all shards
			}
			ids := make([]string, len(members))
			for i := range members {
				ids[i] = members[i].ID
			}
			mine := share(ids, id, shards)
			for shard, stop := range working {
				if !slices.Contains(mine, shard) {
					stop()
					delete(working, shard)
				}
			}
			for _, shard := range mine {
				if working[shard] == nil {
					ctx, stop := context.WithCancel(ctx)
					working[shard] = stop
					g.Go(func() error { return work(ctx, m, id, b, shard) })
				}
			}
		}
		return nil
	})
	return g.Wait()
}

// work works on the shard whenever this worker is elected for it, until ctx ends.
func work(ctx context.Context, m *session.Manager, id string, b *board, shard int) error {
	err := zksync.NewElection(m, fmt.Sprintf("%s/shards/%d", path, shard)).Run(ctx, func(ctx context.Context) error {
		b.move(shard, "", id)
		defer b.move(shard, id, "")
		<-ctx.Done() // this is where a real worker would work
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// share returns the shards of one member, out of n. Each shard goes to the member with
// the greatest hash of both names (rendezvous hashing): only the shards of a member
// that joins or leaves move.
func share(members []string, self string, n int) (mine []int) {
	for shard := range n {
		if owner(members, shard) == self {
			mine = append(mine, shard)
		}
	}
	return mine
}

func owner(members []string, shard int) (best string) {
	var greatest string
	for _, m := range members {
		if hash := sha256.Sum256(fmt.Appendf(nil, "%s %d", m, shard)); string(hash[:]) > greatest {
			best, greatest = m, string(hash[:])
		}
	}
	return best
}
