package queue

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/go-zksync/toolkit/session"
)

// listsPerRequest is the number of directories that one request lists.
const listsPerRequest = 16

// Len returns the number of messages in the queue, those included that consumers have
// claimed and that are not due. It writes nothing.
func (c *Consumer) Len(ctx context.Context) (n int, err error) {
	err = c.cfg.Manager.Do(ctx, func(ctx context.Context, s *session.Session) (err error) {
		n, err = c.count(ctx, s)
		return err
	})
	if err == nil {
		c.ObserveLength(n)
	}
	return n, err
}

// count counts the messages of all partitions. A missing directory counts as empty.
func (c *Consumer) count(ctx context.Context, s *session.Session) (n int, err error) {
	partitions, err := c.cfg.listPartitions(ctx, s)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(partitions, listsPerRequest) {
		reads := make([]session.Read, len(some))
		for i, p := range some {
			// Names and not NumChildren, which also counts children that are no messages.
			reads[i] = session.ReadChildren(p.dir)
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return 0, err
		}
		for i, r := range results {
			if r.Err != nil && session.ClassOf(r.Err) != session.ClassNoNode {
				return 0, r.Err
			}
			n += len(ItemsOf(r.Children, some[i].parse))
		}
	}
	return n, nil
}

// listPartitions returns the partitions of the queue, in order. Some may not exist.
func (c *Config) listPartitions(ctx context.Context, s *session.Session) ([]*partition, error) {
	partitions := []*partition{newPartition(c, laterName, math.MinInt64)}
	if c.Kind.ParsePartition == nil {
		return append(partitions, newPartition(c, "", 0)), nil
	}
	names, _, err := s.Children(ctx, c.Path)
	if err != nil && session.ClassOf(err) != session.ClassNoNode {
		return nil, err
	}
	for _, name := range names {
		if key, ok := c.Kind.ParsePartition(name); ok {
			partitions = append(partitions, newPartition(c, name, key))
		}
	}
	slices.SortFunc(partitions, func(a, b *partition) int { return cmp.Compare(a.key, b.key) })
	return partitions, nil
}
