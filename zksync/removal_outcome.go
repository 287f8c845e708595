package zksync

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// removalOutcome reports whether a message is gone after its removal failed with why, so that
// the outcome of the removal is unknown. The removal cannot happen any more. If
// isGone cannot find out, it returns why.
func (c *consumer) removalOutcome(ctx context.Context, path string, czxid int64, why error) (gone bool, err error) {
	err = c.q.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		// A leader that was deposed would show a message that we have removed.
		if err := s.SyncQuorum(ctx, path); err != nil {
			return err
		}
		_, stat, err := s.Get(ctx, path)
		if gone = session.ClassOf(err) == session.ClassNoNode; gone {
			return nil
		}
		gone = err != nil || stat.Czxid != czxid
		return err
	})
	if err != nil {
		return true, errors.Join(why, err)
	}
	return gone, why
}

// followRemoval leaves a message to a removal whose caller has gone. The message comes back to
// the view when the removal has failed.
func (v *queueView) followRemoval(r messageRef, czxid int64, e *commit.Entry) {
	follow := func() {
		defer v.releaseTake()
		select {
		case <-e.Done():
		case <-v.c.cleanupCtx.Done():
			return
		}
		if e.Err() == nil {
			v.c.pending.resolve(r, czxid)
			v.forgetMessage(r)
		} else {
			v.requeue(r) // if the message is gone the next read finds that out
		}
	}
	if !v.c.spawn(follow) {
		follow()
	}
}
