package zksync

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// listsPerRequest is the number of directories that one request lists.
const listsPerRequest = 16

// Len returns the number of messages in the queue: messages that wait, messages that
// are not due yet, and messages that consumers have and did not acknowledge yet. It
// lists the queue, which takes about 18 bytes a message. The number may be out of
// date when Len returns, so do not base a decision on it.
func (q *queue) Len(ctx context.Context) (int, error) {
	n := 0
	err := q.do(ctx, func(ctx context.Context, s *session.Session) error {
		dirs, err := q.partitionDirs(ctx, s, math.MaxInt64)
		if err != nil {
			return err
		}
		n = 0
		for chunk := range slices.Chunk(dirs, listsPerRequest) {
			lists, err := q.listItems(ctx, s, chunk)
			if err != nil {
				return err
			}
			for _, list := range lists {
				n += len(list)
			}
		}
		return nil
	})
	if err == nil {
		q.observeLength(n)
	}
	return n, q.opError("len", err)
}

// Peek returns the message that would be delivered next, and false if there is none. Such
// a message is due, and no consumer has it. It stays in the queue, and may be gone when
// Peek returns. It lists the queue, as Len does. Messages that cannot be read are passed
// over; if there are no others Peek fails with the reason.
func (q *queue) Peek(ctx context.Context) (data []byte, ok bool, err error) {
	err = q.do(ctx, func(ctx context.Context, s *session.Session) error {
		now := int64(math.MaxInt64)
		if q.kind.delayed {
			now = time.Now().UnixMilli()
		}
		// The claims first: a claim that is created after this list makes Peek return a
		// message that was free at the time of the call.
		claims, _, err := s.Children(ctx, q.child(claimsName))
		if err != nil && session.ClassOf(err) != session.ClassNoNode {
			return err
		}
		dirs, err := q.partitionDirs(ctx, s, now)
		if err != nil {
			return err
		}
		var unreadable error
		for _, dir := range dirs {
			lists, err := q.listItems(ctx, s, []string{dir})
			if err != nil {
				return err
			}
			if q.kind.parsePartition == nil {
				q.observeLength(len(lists[0]))
			}
			for _, it := range lists[0] {
				if it.due > now {
					break
				}
				if _, claimed := slices.BinarySearch(claims, q.claimNameIn(dir, it)); claimed {
					continue
				}
				// The message may have been removed since the listing. Then the next one is the
				// first.
				data, _, err = s.Get(ctx, znode.Join(dir, it.name))
				if session.ClassOf(err) == session.ClassNoAuth {
					unreadable = err
					continue
				}
				if session.ClassOf(err) != session.ClassNoNode {
					ok = err == nil
					return err
				}
			}
		}
		return unreadable
	})
	return data, ok, q.opError("peek", err)
}

// claimNameIn returns the name of the claim on a message: the name of the message itself,
// with the partition's name in front where there are partitions.
func (q *queue) claimNameIn(dir string, it queueItem) string {
	if q.kind.parsePartition == nil {
		return it.name
	}
	return znode.Base(dir) + "-" + it.name
}

// do calls fn under a session, and retries it like session.Manager.Do.
func (q *queue) do(ctx context.Context, fn func(context.Context, *session.Session) error) error {
	if err := q.checkUsable(); err != nil {
		return err
	}
	return q.m.Do(ctx, fn)
}

// partitionDirs are the directories that messages are in, in the order in which they are
// drained, up to a key.
func (q *queue) partitionDirs(ctx context.Context, s *session.Session, upTo int64) ([]string, error) {
	if q.kind.parsePartition == nil {
		return []string{q.path}, nil
	}
	// A missing directory is an empty queue: no Put has created it yet.
	names, _, err := s.Children(ctx, q.path)
	if session.ClassOf(err) == session.ClassNoNode {
		return nil, nil
	}
	type partition struct {
		key int64
		dir string
	}
	var partitions []partition
	for _, name := range names {
		if key, ok := q.kind.parsePartition(name); ok && key <= upTo {
			partitions = append(partitions, partition{key, q.child(name)})
		}
	}
	slices.SortFunc(partitions, func(a, b partition) int { return cmp.Compare(a.key, b.key) })
	dirs := make([]string, len(partitions))
	for i, p := range partitions {
		dirs[i] = p.dir
	}
	return dirs, err
}

// listItems lists the messages in directories, in order. A missing directory counts as
// empty.
func (q *queue) listItems(ctx context.Context, s *session.Session, dirs []string) ([][]queueItem, error) {
	reads := make([]session.Read, len(dirs))
	for i, dir := range dirs {
		reads[i] = session.ReadChildren(dir)
	}
	results, err := s.MultiRead(ctx, reads...)
	if err != nil {
		return nil, err
	}
	lists := make([][]queueItem, len(dirs))
	for i, r := range results {
		if r.Err != nil && session.ClassOf(r.Err) != session.ClassNoNode {
			return nil, r.Err
		}
		lists[i] = itemsOf(r.Children, q.kind.parse)
	}
	return lists, nil
}
