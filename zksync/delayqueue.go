package zksync

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// A DelayQueue hands messages from producers to consumers, none before it is due: in
// the order in which they fall due, and first in first out among messages that fall
// due in the same millisecond. Otherwise it behaves like a Queue. A message that is
// already due when it is put is delivered at once, but does not overtake messages
// that consumers have claimed.
//
// The producer's clock decides when a message is due, and the consumer's clock when
// that time has come: if the clocks differ, messages come earlier or later by the
// difference. A consumer that waits notices within a minute that its clock was set.
//
// Each span of ten seconds has a directory of its own, t- and its begin, and the names of
// messages contain their due times, in milliseconds since 1970. A consumer that lags
// behind delivers the messages of a span that it has listed before messages that were put
// later, even if these are due earlier. Beside more than 512 spans it may notice a new span
// later, by 20 microseconds for each of them. All directories need the same permissions, as in a
// PriorityQueue.
type DelayQueue struct{ queue }

// NewDelayQueue returns a DelayQueue at path. Like NewQueue it does no I/O.
func NewDelayQueue(m *session.Manager, path string, opts ...DelayQueueOption) *DelayQueue {
	q := &DelayQueue{}
	initQueue(&q.queue, "DelayQueue", m, path, engine.ByTime, opts)
	return q
}

// Put adds a message that is due after a delay. Without a positive delay it is due at once. Put fails with
// ErrInvalidTime if no name can contain the due time. Otherwise it behaves like Queue.Put.
func (q *DelayQueue) Put(ctx context.Context, data []byte, delay time.Duration) error {
	return q.PutAt(ctx, data, time.Now().Add(delay))
}

// PutAt is Put for a message that is due at a certain time. A time in the past means
// now.
func (q *DelayQueue) PutAt(ctx context.Context, data []byte, at time.Time) error {
	return q.put(ctx, q.destination(at), data)
}

// PutAll adds messages that are due after one delay, in order. Otherwise it behaves like
// Queue.PutAll, and it checks the due time as Put does.
func (q *DelayQueue) PutAll(ctx context.Context, delay time.Duration, messages ...[]byte) error {
	return q.putAll(ctx, q.destination(time.Now().Add(delay)), messages)
}

// destination returns the destination of a message that is due at a certain time.
func (q *DelayQueue) destination(at time.Time) destination {
	latest := time.UnixMilli(engine.MaxDueMillis)
	if at.After(latest) {
		return destination{err: fmt.Errorf("%w: due at %v, want at the latest %v", ErrInvalidTime, at, latest.UTC())}
	}
	if now := time.Now(); at.Before(now) {
		at = now
	}
	// Rounded up: a message must not be delivered before its time.
	due := at.Add(time.Millisecond - 1).UnixMilli()
	return destination{dir: q.child(engine.DelayPartition(due)), name: engine.DelayedPrefix(due)}
}
