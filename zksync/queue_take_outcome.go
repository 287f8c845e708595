package zksync

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
)

// isGone says whether a message is gone whose removal is of unknown outcome,
// because of why, and cannot happen any more. If that cannot be found out either, it
// returns why.
func (c *consumer) isGone(ctx context.Context, path string, czxid int64, why error) (gone bool, err error) {
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

// undo puts a message back whose removal turns out to have happened though its
// caller has gone. No number is given twice, so its name is still its own.
func (o *outlook) undo(r ref, data []byte, czxid int64, e *entry) {
	defer o.releaseTake()
	defer o.back(r)
	select {
	case <-e.done:
	case <-o.c.life.Done():
		return
	}
	path, err := o.path(r), e.err
	if isUnknown(err) {
		gone, why := o.c.isGone(o.c.life, path, czxid, err)
		if !gone {
			return
		}
		// It is more likely that we have taken it than that another did just then, and
		// better that it comes twice than never.
		o.c.q.m.Logger().Warn("a message is put back that was taken, or removed by another",
			zap.String("path", path), zap.Error(why))
		err = nil
	}
	if err != nil || o.c.owed.settle(r, czxid) {
		return
	}
	t := tx{ops: []any{&zk.CreateRequest{Path: path, Data: data}}, size: len(path) + len(data) + 100, dir: o.dir(r.lane)}
	select {
	case <-o.c.q.removals.startOne(nil, t).done:
	case <-o.c.life.Done():
	}
}
