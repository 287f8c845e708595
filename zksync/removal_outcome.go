package zksync

import (
	"context"
	"errors"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// removalOutcome reports whether a message is gone after its removal failed with why, an
// error that leaves the outcome unknown. The removal cannot happen any more. If
// removalOutcome cannot find out, it returns true and why.
func (c *consumer) removalOutcome(ctx context.Context, path string, czxid int64, why error) (gone bool, err error) {
	err = c.q.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		// A deposed leader would show a message whose removal its successor has committed.
		if err := s.SyncQuorum(ctx, path); err != nil {
			return err
		}
		_, stat, err := s.Get(ctx, path)
		if gone = session.ClassOf(err) == session.ClassNoNode; gone {
			return nil
		}
		gone = err != nil || stat.Czxid != czxid // another znode of the same name
		return err
	})
	if err != nil {
		return true, errors.Join(why, err)
	}
	return gone, why
}

// followRemoval waits in the background for a removal whose caller has gone. If the
// removal fails, it requeues the message.
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
			v.requeue(r) // if the message is gone, the next read finds that out
		}
	}
	// After Close has begun, no goroutine is started: then the Take itself waits, and
	// Close waits for the Take.
	if !v.c.spawn(follow) {
		follow()
	}
}
