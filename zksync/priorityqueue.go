package zksync

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// A PriorityQueue hands messages from producers to consumers, the more urgent first,
// and first in first out within a priority. Otherwise it behaves like a Queue. A
// message does not overtake messages that consumers have already claimed.
//
// Each priority has a directory of its own, p-000 to p-255, in which messages are
// named as in a Queue.
type PriorityQueue struct{ queue }

// NewPriorityQueue returns a PriorityQueue at path. Like NewQueue it does no I/O.
func NewPriorityQueue(m *session.Manager, path string, opts ...PriorityQueueOption) *PriorityQueue {
	q := &PriorityQueue{}
	q.cfg, q.bad = newConfig("PriorityQueue", path, opts)
	q.init(m, path, engine.ByPriority)
	return q
}

// Put adds a message with a priority from 0, the most urgent, to MaxPriority. See
// Queue.Put for the rest.
func (q *PriorityQueue) Put(ctx context.Context, data []byte, priority int) error {
	if err := checkPriority(priority); err != nil {
		return q.opError("put", err)
	}
	return q.put(ctx, q.child(engine.PriorityPartition(priority)), engine.ItemPrefix, data)
}

// PutAll adds messages of one priority, in order. See Queue.PutAll for the rest.
func (q *PriorityQueue) PutAll(ctx context.Context, priority int, messages ...[]byte) error {
	if err := checkPriority(priority); err != nil {
		return q.opError("putAll", &PutAllError{All: len(messages), Err: err})
	}
	return q.putAll(ctx, q.child(engine.PriorityPartition(priority)), engine.ItemPrefix, messages)
}

// MaxPriority is the least urgent priority of a PriorityQueue.
const MaxPriority = engine.MaxPriority

func checkPriority(priority int) error {
	if priority < 0 || priority > MaxPriority {
		return fmt.Errorf("%w: %d, want 0, the most urgent, to %d", ErrInvalidPriority, priority, MaxPriority)
	}
	return nil
}
