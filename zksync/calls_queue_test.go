package zksync_test

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
)

// queueCalls are the blocking calls of the queues.
var queueCalls = []blockingCall{
	{name: "Queue.Put", play: func(st *stage) play {
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return q.Put(ctx, []byte("x")) }, close: q.Close}
	}},
	{name: "Queue.Put for which there is no room", play: func(st *stage) play {
		q, theirs := zksync.NewQueue(st.m, stagePath, zksync.WithCapacity(1)), zksync.NewQueue(st.other, stagePath)
		st.must(theirs.Put(st.ctx, nil))
		return play{
			call: func(ctx context.Context) error { return q.Put(ctx, []byte("x")) },
			release: func() {
				_, err := theirs.Take(st.ctx)
				st.must(err)
			},
			close: q.Close,
		}
	}},
	{name: "Queue.Take", play: func(st *stage) play {
		theirs, q := zksync.NewQueue(st.other, stagePath), zksync.NewQueue(st.m, stagePath)
		return play{
			call:    func(ctx context.Context) error { _, err := q.Take(ctx); return err },
			release: func() { st.must(theirs.Put(st.ctx, []byte("x"))) },
			close:   q.Close,
		}
	}},
	{name: "Queue.TryTake", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			_, ok, err := q.TryTake(ctx)
			return declined(ok, err)
		}, close: q.Close}
	}},
	{name: "Queue.Peek", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			_, ok, err := q.Peek(ctx)
			return declined(ok, err)
		}, close: q.Close}
	}},
	{name: "Queue.Len", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			n, err := q.Len(ctx)
			if err == nil && n != 1 {
				st.errorf("Len returned %d and no error", n)
			}
			return err
		}, close: q.Close}
	}},
	{name: "Message.Ack", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		msg := <-q.Messages()
		synctest.Wait()
		return play{call: msg.Ack, close: q.Close}
	}},
	{name: "PriorityQueue.Put", play: func(st *stage) play {
		q := zksync.NewPriorityQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return q.Put(ctx, []byte("x"), 7) }, close: q.Close}
	}},
	{name: "DelayQueue.Take", play: func(st *stage) play {
		st.must(zksync.NewDelayQueue(st.other, stagePath).Put(st.ctx, []byte("x"), time.Second))
		q := zksync.NewDelayQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := q.Take(ctx); return err }, close: q.Close}
	}},
}
