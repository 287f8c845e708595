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
	// discard removes the znodes in the background.
	discard(g *Grant)
}

// uniqueNames removes znodes whose names no other client can have: each name contains a
// GUID or a sequence number. So it does no harm to repeat the deletion.
type uniqueNames struct{}

func (uniqueNames) remove(g *Grant) error {
	ctx, cancel := context.WithDeadline(context.Background(), g.s.Deadline())
	defer cancel()
	var err error
	if len(g.guards) == 1 {
		err = g.s.Delete(ctx, g.guards[0].path, -1)
	} else {
		ops := make([]any, len(g.guards))
		for i := range g.guards {
			ops[i] = &zk.DeleteRequest{Path: g.guards[i].path, Version: -1}
		}
		_, err = g.s.Multi(ctx, ops...)
	}
	switch session.ClassOf(err) {
	case session.ClassOK:
		return nil
	case session.ClassNoNode:
		if len(g.guards) > 1 {
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

func (uniqueNames) discard(g *Grant) { discardAll(g) }

// discardAll removes the znodes of a grant in the background. Each channel is closed when
// its znode is gone or the session is over.
func discardAll(g *Grant) []<-chan struct{} {
	if g.s.Err() != nil {
		return nil
	}
	all := make([]<-chan struct{}, len(g.guards))
	for i := range g.guards {
		all[i] = g.s.Discard(g.guards[i].path)
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
