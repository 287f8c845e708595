package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A znodeRemover removes the znodes of a grant.
type znodeRemover interface {
	// deleteZnodes deletes the znodes. It fails with ErrRemoved if another client has
	// deleted one of them.
	deleteZnodes(ctx context.Context, g *Grant) error
	// discardZnodes removes the znodes in the background. The channels are like the channel
	// of Session.Discard, one for each znode.
	discardZnodes(g *Grant) []<-chan error
	// identify returns a function that reports whether a znode at the path of the grant is the znode of the grant. It
	// returns nil if no other client creates a znode there.
	identify() func(*zk.Stat) bool
	// gone is called when another client has removed a znode, before the loss is known.
	gone()
}

// uniqueNames removes znodes whose names no other client can have: each name contains a
// GUID or a sequence number. So it does no harm to repeat the deletion.
type uniqueNames struct{}

func (r uniqueNames) deleteZnodes(ctx context.Context, g *Grant) error {
	paths := g.guard.paths
	if len(paths) == 1 {
		return g.s.Delete(ctx, paths[0], -1)
	}
	ops := make([]any, len(paths))
	for i, path := range paths {
		ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
	}
	// One transaction wakes the next in line once, and the next in line finds all units free.
	_, err := g.s.Multi(ctx, ops...)
	if session.ClassOf(err) == session.ClassNoNode {
		// One znode is missing, so the transaction has deleted none of the others.
		r.discardZnodes(g) // the remaining znodes
	}
	return err
}

func (uniqueNames) discardZnodes(g *Grant) (all []<-chan error) {
	// The end of the session deletes the znodes.
	if g.s.Err() != nil {
		return nil
	}
	for _, path := range g.guard.paths {
		all = append(all, g.s.Discard(path))
	}
	return all
}

func (uniqueNames) identify() func(*zk.Stat) bool { return nil }

func (uniqueNames) gone() {}
