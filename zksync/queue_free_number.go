package zksync

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// freeNumber makes a directory usable again that has no number for another message.
// Usually its counter is spent, after two thousand million messages: then renew waits
// until all of these have been consumed, and removes the directory, so that a new one
// is created. Otherwise another client has created a message with the next number,
// and renew waits until that message is gone.
func (q *queue) freeNumber(ctx context.Context, s *session.Session, dir string) error {
	for {
		names, stat, w, err := s.WatchChildren(ctx, dir)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		next := (int64(stat.Cversion) + int64(stat.NumChildren)) / 2 // creations so far
		spent := int32(uint32(stat.Cversion)+uint32(stat.NumChildren)) == -2
		inTheWay := func(name string) bool {
			it, ok := q.kind.parse(name)
			return ok && (spent || it.seq == int32(next))
		}
		if slices.ContainsFunc(names, inTheWay) {
			if err := znode.AwaitEvent(ctx, s, w); err != nil {
				return err
			}
			continue
		}
		w.Stop()
		if !spent {
			return nil
		}
		if done, err := q.deleteSpentDir(ctx, s, dir, names); done || err != nil {
			return err
		}
	}
}

// await waits for a watch to fire.
func await(ctx context.Context, s *session.Session, w *session.Watch) error {
	defer w.Stop()
	select {
	case <-w.Events():
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// deleteSpentDir removes a directory without messages, with our znodes in it. It reports
// false if something has changed meanwhile.
func (q *queue) deleteSpentDir(ctx context.Context, s *session.Session, dir string, names []string) (bool, error) {
	var ops []any
	for _, name := range names {
		path := znode.Join(dir, name)
		if !strings.HasPrefix(name, "zksync-") {
			// It has to stay, and so has the directory. It has one number left, which
			// is free now: for one message at a time.
			return true, nil
		}
		inside, _, err := s.Children(ctx, path)
		if err != nil && session.ClassOf(err) != session.ClassNoNode {
			return false, err
		}
		for _, name := range inside {
			ops = append(ops, &zk.DeleteRequest{Path: znode.Join(path, name), Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	_, err := s.Multi(ctx, append(ops, &zk.DeleteRequest{Path: dir, Version: -1})...)
	switch session.ClassOf(err) {
	case session.ClassNotEmpty, session.ClassNoNode:
		return false, nil
	}
	return err == nil, err
}
