package commit

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// freeNumber waits until a directory has a number for another message. Usually the
// counter of the directory is spent, after two thousand million messages: then freeNumber
// waits until all messages are consumed, and deletes the directory, so that a new one is
// created. Otherwise another client has created a message with the next number, and
// freeNumber waits until that message is gone.
func (c *Committer) freeNumber(ctx context.Context, s *session.Session, dir string) error {
	for {
		names, stat, w, err := s.WatchChildren(ctx, dir)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		// A server counts the creations in a directory, and numbers the next child by that
		// count. It reports the count as Cversion = 2*creations - NumChildren. The counter
		// is spent at the largest int32, and twice that wraps to -2.
		next := (int64(stat.Cversion) + int64(stat.NumChildren)) / 2
		spent := int32(uint32(stat.Cversion)+uint32(stat.NumChildren)) == -2
		inTheWay := func(name string) bool {
			seq, ok := c.NumberOf(name)
			return ok && (spent || seq == int32(next))
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
		if waited, err := awaitChangeIfUsed(ctx, s, znode.Join(dir, LaterDir)); err != nil {
			return err
		} else if waited {
			continue
		}
		// If the directory has changed since the listing, list it again.
		if done, err := deleteSpentDir(ctx, s, dir, names); done || err != nil {
			return err
		}
	}
}

// LaterDir has the messages that wait for another delivery, in the directory of a queue.
const LaterDir = "zksync-later"

// awaitChangeIfUsed waits for a change of a directory that has znodes in it. It reports
// false if the directory is empty or does not exist.
func awaitChangeIfUsed(ctx context.Context, s *session.Session, dir string) (waited bool, err error) {
	inside, _, w, err := s.WatchChildren(ctx, dir)
	switch {
	case session.ClassOf(err) == session.ClassNoNode:
		return false, nil
	case err != nil:
		return false, err
	case len(inside) == 0:
		w.Stop()
		return false, nil
	}
	return true, znode.AwaitEvent(ctx, s, w)
}

// deleteSpentDir deletes a directory without messages, and the znodes of this package in
// it. It reports false if the directory has changed since it was listed.
func deleteSpentDir(ctx context.Context, s *session.Session, dir string, names []string) (bool, error) {
	var ops []any
	for _, name := range names {
		path := znode.Join(dir, name)
		if !strings.HasPrefix(name, "zksync-") {
			// The znode of another program has to stay, and so has the directory. The
			// counter stands still at its last number, which is free now: the queue goes on
			// with one message at a time.
			return true, nil
		}
		if name == LaterDir {
			// The server refuses to delete it with messages in it.
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
			continue
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
	// One transaction: the server refuses it as a whole if a znode was created in one of
	// the directories since they were listed.
	_, err := s.Multi(ctx, append(ops, &zk.DeleteRequest{Path: dir, Version: -1})...)
	switch session.ClassOf(err) {
	case session.ClassNotEmpty, session.ClassNoNode:
		return false, nil
	}
	return err == nil, err
}
