package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// message is the data of all messages of all queues.
var message = []byte("a message of forty bytes, as many are....")

func (t *toolkit) put(ctx context.Context, j job) (sample, error) {
	m, err := t.one(ctx)
	if err != nil {
		return sample{}, err
	}
	q := zksync.NewQueue(m, j.Path)
	if err := q.Put(ctx, message); err != nil { // makes the directory
		return sample{}, err
	}
	s, err := t.metered(j.Ops, func() error {
		g, ctx := errgroup.WithContext(ctx)
		for range j.Clients {
			g.Go(func() error {
				for range j.Ops / j.Clients {
					if err := q.Put(ctx, message); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	})
	if err != nil {
		return s, err
	}
	return s, q.Close()
}

// deliver receives all messages with one consumer a session. The extra value "share" is
// the largest number of messages of one consumer, divided by the mean.
func (t *toolkit) deliver(ctx context.Context, j job) (sample, error) {
	all, err := t.connect(ctx, j.Sessions)
	if err != nil {
		return sample{}, err
	}
	if err := fill(ctx, all[0], j.Path, j.Backlog); err != nil {
		return sample{}, err
	}
	counts := make([]int, j.Sessions)
	s, err := t.metered(j.Ops, func() error {
		var left atomic.Int64
		left.Store(int64(j.Ops))
		done := make(chan struct{})
		g, ctx := errgroup.WithContext(ctx)
		for i, m := range all {
			q := zksync.NewQueue(m, j.Path)
			g.Go(func() error {
				err := consume(ctx, q, done, func() {
					counts[i]++
					if left.Add(-1) == 0 {
						close(done)
					}
				})
				return errors.Join(err, q.Close()) // the received messages are removed by then
			})
		}
		return g.Wait()
	})
	if err != nil {
		return s, err
	}
	s.Extra["share"] = float64(slices.Max(counts)*len(counts)) / float64(j.Ops)
	_, stat, err := existing(ctx, all[0], j.Path)
	if err == nil && int(stat.NumChildren) >= j.Backlog {
		err = fmt.Errorf("%d znodes are left of %d messages", stat.NumChildren, j.Backlog)
	}
	return s, err
}

// consume calls received for each message of q until done is closed.
func consume(ctx context.Context, q *zksync.Queue, done <-chan struct{}, received func()) error {
	for {
		select {
		case _, ok := <-q.Chan():
			if !ok {
				return q.Err()
			}
			received()
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func existing(ctx context.Context, m *session.Manager, path string) (ok bool, stat *zk.Stat, err error) {
	err = m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		ok, stat, err = s.Exists(ctx, path)
		return err
	})
	return ok, stat, err
}

// fill puts messages into an empty queue with plain requests.
func fill(ctx context.Context, m *session.Manager, path string, n int) error {
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	if err := s.MakeDir(ctx, path); err != nil {
		return err
	}
	const batch = 1000
	for done := 0; done < n; done += batch {
		var ops []any
		for range min(batch, n-done) {
			ops = append(ops, &zk.CreateRequest{Path: path + "/qn-", Data: message, Flags: zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)})
		}
		if _, err := s.Multi(ctx, ops...); err != nil {
			return err
		}
	}
	return nil
}
