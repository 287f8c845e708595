package commit

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// LaterDir has the messages that wait for another delivery, in the directory of a queue.
const LaterDir = "zksync-later"

// MarkersDir has the markers, in the directory of a queue.
const MarkersDir = "zksync-markers"

// FreeNumber waits until a directory has a number for another message. Usually the
// counter of the directory is spent, after two thousand million messages: then FreeNumber
// waits until all messages are consumed, and deletes the directory, so that a new one is
// created. Otherwise another client has created a message with the next number, and
// FreeNumber waits until that message is gone. FreeNumber keeps a directory with znodes of
// other programs: its counter stands still at the last number, which is free again when all
// messages are consumed. numberOf is as of a Committer.
func FreeNumber(ctx context.Context, s *session.Session, dir string, numberOf func(string) (int32, bool)) error {
	f := freeing{s: s, dir: dir, numberOf: numberOf}
	return f.run(ctx)
}

// A freeing is one FreeNumber.
type freeing struct {
	s        *session.Session
	dir      string
	numberOf func(string) (int32, bool)
	waited   bool // until other clients consumed messages
	gone     bool // the directory or markers in it may have been deleted
}

func (f *freeing) run(ctx context.Context) error {
	for round := 0; ; round++ {
		// Other clients that create znodes in the directory may require many rounds.
		if err := f.s.Pause(ctx, round); err != nil {
			return err
		}
		names, stat, w, err := f.s.WatchChildren(ctx, f.dir)
		if session.ClassOf(err) == session.ClassNoNode {
			f.gone = true
			return nil
		}
		if err != nil {
			return err
		}
		next, spent := nextNumber(stat)
		inTheWay := func(name string) bool {
			seq, ok := f.numberOf(name)
			return ok && (spent || seq == next)
		}
		if slices.ContainsFunc(names, inTheWay) {
			if err := f.await(ctx, w); err != nil {
				return err
			}
			round = 0
			continue
		}
		w.Stop()
		if !spent {
			return nil
		}
		if done, err := f.deleteDir(ctx, names); done || err != nil {
			return err
		}
	}
}

// await waits for a change by another client.
func (f *freeing) await(ctx context.Context, w *session.Watch) error {
	f.waited = true
	return znode.AwaitEvent(ctx, f.s, w)
}

// nextNumber returns the number of the next child of a directory, and whether its counter is spent.
func nextNumber(dir *zk.Stat) (next int32, spent bool) {
	// A server counts the creations in a directory, and numbers the next child by that
	// count. It reports the count as Cversion = 2*creations - NumChildren. The counter
	// is spent at the largest int32, and twice that wraps to -2.
	twice := uint32(dir.Cversion) + uint32(dir.NumChildren) // Cversion wraps, and so must the sum
	return int32(twice / 2), int32(twice) == -2
}

// deleteDir deletes a directory without messages, whose counter is spent, and the znodes
// of this package in it. It waits while messages wait for another delivery. It reports
// false if the directory may have changed since it was listed.
func (f *freeing) deleteDir(ctx context.Context, names []string) (bool, error) {
	var ops, markers []any
	for _, name := range names {
		if !strings.HasPrefix(name, "zksync-") {
			// The znode of another program has to stay, and so has the directory: the queue
			// goes on with one message at a time.
			return true, nil
		}
		child := znode.Join(f.dir, name)
		inside, _, w, err := f.s.WatchChildren(ctx, child)
		if err != nil && session.ClassOf(err) != session.ClassNoNode {
			return false, err
		}
		if name == LaterDir && len(inside) > 0 {
			return false, f.await(ctx, w)
		}
		w.Stop()
		own := &ops
		if name == MarkersDir {
			own = &markers
		}
		for _, name := range inside {
			*own = append(*own, &zk.DeleteRequest{Path: znode.Join(child, name), Version: -1})
		}
		ops = append(ops, &zk.DeleteRequest{Path: child, Version: -1})
	}
	// One transaction: the server refuses it as a whole if a znode was created in one of
	// the directories since they were listed.
	ops = append(markers, append(ops, &zk.DeleteRequest{Path: f.dir, Version: -1})...)
	results, err := f.s.Multi(ctx, ops...)
	switch session.ClassOf(err) {
	case session.ClassTooLarge:
		// Processes that have died leave markers. Without its marker, a process creates another.
		if len(markers) == 0 {
			return false, err
		}
		return f.deleteSome(ctx, markers)
	case session.ClassNotEmpty:
		// A znode two levels below has children only if another program has created them. They
		// have to stay, too.
		at := session.FailedOp(results)
		return at >= 0 && path.Dir(path.Dir(ops[at].(*zk.DeleteRequest).Path)) == f.dir, nil
	case session.ClassNoNode:
		return false, nil
	}
	f.gone = true // or the answer was lost
	return err == nil, err
}

// deleteSome deletes markers, as many as fit into a request. It reports whether the directory has to stay.
func (f *freeing) deleteSome(ctx context.Context, markers []any) (stays bool, err error) {
	for {
		_, err := f.s.Multi(ctx, markers...)
		switch class := session.ClassOf(err); {
		case class == session.ClassTooLarge && len(markers) > 1:
			markers = markers[:len(markers)/2]
		case class == session.ClassNoNode:
			return false, nil // the next listing tells
		case class == session.ClassNotEmpty:
			return true, nil // another program has created a znode below a marker
		default:
			f.gone = true // even if the directory has to stay, the marker of this process may have gone
			return false, err
		}
	}
}

// SkipNumber uses up the next number of a directory, which another client has given to a message
// of its own: the directory then gives the number behind it. It returns false if the counter of the
// directory is spent. FreeNumber, in contrast, waits for the message, which needs consumers with room.
func SkipNumber(ctx context.Context, s *session.Session, dir string) (bool, error) {
	ok, stat, err := s.Exists(ctx, dir)
	if err != nil || !ok {
		return err == nil, err // the next attempt creates the directory
	}
	if _, spent := nextNumber(stat); spent {
		return false, nil
	}
	// A server counts every creation. No client sees the znode, since one transaction deletes it.
	path := znode.Join(dir, "zksync-skip")
	_, err = s.Multi(ctx, &zk.CreateRequest{Path: path}, &zk.DeleteRequest{Path: path, Version: -1})
	return err == nil, err
}
