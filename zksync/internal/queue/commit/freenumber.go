package commit

import (
	"context"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// LaterDir has the messages that wait for another delivery, in the directory of a queue.
const LaterDir = "zksync-later"

// FreeNumber waits until a directory has a number for another message. Usually the
// counter of the directory is spent, after two thousand million messages: then FreeNumber
// waits until all messages are consumed, and deletes the directory, so that a new one is
// created. Otherwise another client has created a message with the next number, and
// FreeNumber waits until that message is gone. numberOf is as of a Committer.
func FreeNumber(ctx context.Context, s *session.Session, dir string, numberOf func(string) (int32, bool)) error {
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
		twice := uint32(stat.Cversion) + uint32(stat.NumChildren) // Cversion wraps, and so must the sum
		next := int32(twice / 2)
		spent := int32(twice) == -2
		inTheWay := func(name string) bool {
			seq, ok := numberOf(name)
			return ok && (spent || seq == next)
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
		if done, err := deleteSpentDir(ctx, s, dir, names); done || err != nil {
			return err
		}
	}
}

// deleteSpentDir deletes a directory without messages, and the znodes of this package in
// it. It waits while messages wait for another delivery. It reports false if the directory
// may have changed since it was listed.
func deleteSpentDir(ctx context.Context, s *session.Session, dir string, names []string) (bool, error) {
	var ops []any
	for _, name := range names {
		if !strings.HasPrefix(name, "zksync-") {
			// The znode of another program has to stay, and so has the directory. The
			// counter stands still at its last number, which is free now: the queue goes on
			// with one message at a time.
			return true, nil
		}
		path := znode.Join(dir, name)
		inside, _, w, err := s.WatchChildren(ctx, path)
		if err != nil && session.ClassOf(err) != session.ClassNoNode {
			return false, err
		}
		if name == LaterDir && len(inside) > 0 {
			return false, znode.AwaitEvent(ctx, s, w)
		}
		w.Stop()
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
