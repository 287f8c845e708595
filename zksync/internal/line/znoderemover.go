package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A znodeRemover removes the znodes of a grant.
type znodeRemover interface {
	// remove waits for the answer, at most until the session's Deadline; from then on
	// the removal continues in the background. It fails if another client has deleted a
	// znode or ended the session, perhaps before the call.
	remove(g *Grant) error
	// discardZnodes removes the znodes in the background.
	discardZnodes(g *Grant)
	// gone is called when another client has removed a znode, before the loss is known.
	gone()
}

// uniqueNames removes znodes whose names no other client can have: each name contains a
// GUID or a sequence number. So it does no harm to repeat the deletion.
type uniqueNames struct{}

func (uniqueNames) remove(g *Grant) error {
	ctx, cancel := context.WithDeadline(context.Background(), g.s.Deadline())
	defer cancel()
	paths := g.guard.paths
	var err error
	if len(paths) == 1 {
		err = g.s.Delete(ctx, paths[0], -1)
	} else {
		ops := make([]any, len(paths))
		for i, path := range paths {
			ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
		}
		_, err = g.s.Multi(ctx, ops...)
	}
	switch session.ClassOf(err) {
	case session.ClassOK:
		return nil
	case session.ClassNoNode:
		if len(paths) > 1 {
			// One znode is missing, so the transaction has deleted none of the others.
			discardAll(g) // the remaining znodes
		}
		return session.ErrRemoved
	case session.ClassNoAuth, session.ClassNotEmpty, session.ClassFinal:
		// The server would refuse the janitor in the same way.
		return err
	}
	return awaitGone(ctx, g.s, discardAll(g)...)
}

func (uniqueNames) discardZnodes(g *Grant) { discardAll(g) }

func (uniqueNames) gone() {}

// discardAll removes the znodes of a grant in the background. Each channel is closed when
// its znode is gone or the session is over.
func discardAll(g *Grant) []<-chan struct{} {
	if g.s.Err() != nil {
		return nil
	}
	var all []<-chan struct{}
	for _, path := range g.guard.paths {
		all = append(all, g.s.Discard(path))
	}
	return all
}

// awaitGone waits, bounded by ctx, until the janitor has deleted znodes of ours. It fails
// if another client has ended the session.
func awaitGone(ctx context.Context, s *session.Session, all ...<-chan struct{}) error {
	for _, gone := range all {
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
	if err := s.Err(); err != nil && ctx.Err() == nil {
		// The session has ended before its Deadline, perhaps before the release.
		return znode.LossOf(err)
	}
	// The hold was good until the release began, even if no request has reached the
	// server.
	return nil
}
