package line

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Contest is how candidates come to lead: a Line or a Race.
type Contest interface {
	// Acquire waits until the candidate leads.
	Acquire(ctx context.Context) (*Grant, error)
	// List returns the first n candidates in order, or all if n is negative.
	List(ctx context.Context, s *session.Session, n int) ([]Listed, error)
	// follow returns the znode of the leader, or a nil Stat if there is no leader, and a
	// watch for the next change. The watch is nil, or the error NoNode, if the state has
	// changed during the reads.
	follow(ctx context.Context, s *session.Session) (data []byte, stat *zk.Stat, w *session.Watch, err error)
}

// Observe reports the znode of the leader, or a nil Stat if there is no leader, and then
// each change of leader, for as long as the session lasts. It watches the leader's znode
// alone, so that candidates that join and leave behind the leader wake no observer.
func Observe(ctx context.Context, s *session.Session, c Contest, report func(data []byte, stat *zk.Stat)) error {
	for round := 0; ; {
		data, stat, w, err := c.follow(ctx, s)
		class := session.ClassOf(err)
		// An internal error of a server says nothing about the znodes, and the Manager does not
		// repeat the call after one.
		if err == nil && w == nil || class == session.ClassNoNode || class == session.ClassUnknown {
			// Most often a leader has left between two reads, and the next attempt succeeds. A server
			// whose answers are errors or contradict each other for longer must not be asked in a
			// tight loop.
			if err := s.Pause(ctx, round); err != nil {
				return err
			}
			round++
			continue
		}
		if err != nil {
			return err
		}
		report(data, stat)
		round = 0
		if err := znode.AwaitEvent(ctx, s, w); err != nil {
			return err
		}
	}
}
