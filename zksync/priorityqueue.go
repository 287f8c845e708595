package zksync

import (
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// A PriorityQueue hands messages from producers to consumers, the more urgent first,
// and first in first out within a priority. Otherwise it behaves like a Queue. A
// message does not overtake messages that consumers have already claimed. A consumer learns of a message by a
// watch, so a less urgent message may still come right behind the Put of a more urgent one.
//
// Each priority has a directory of its own, p-000 to p-255, in which messages are
// named as in a Queue. Give all of them the same permissions: a consumer that may not
// list the directory of one priority, or not remove messages from it, receives no messages
// of other priorities either, and the channel of Chan or Messages is closed with the reason.
type PriorityQueue struct{ queue }

// NewPriorityQueue returns a PriorityQueue at path. Like NewQueue it does no I/O.
func NewPriorityQueue(m *session.Manager, path string, opts ...PriorityQueueOption) *PriorityQueue {
	q := &PriorityQueue{}
	initQueue(&q.queue, "PriorityQueue", m, path, engine.ByPriority, opts)
	return q
}

// Put adds a message with a priority from 0, the most urgent, to MaxPriority. It fails
// with ErrInvalidPriority for any other priority. The Puts of a value stay in order over
// all priorities: while one waits because its priority has no number left, until the
// messages of that priority are consumed, later Puts wait, too. Otherwise it behaves like
// Queue.Put.
func (q *PriorityQueue) Put(ctx context.Context, data []byte, priority int) error {
	return q.put(ctx, q.destination(priority), data)
}

// PutAll adds messages of one priority, in order. Otherwise it behaves like Queue.PutAll,
// and it checks the priority as Put does.
func (q *PriorityQueue) PutAll(ctx context.Context, priority int, messages ...[]byte) error {
	return q.putAll(ctx, q.destination(priority), messages)
}

// MaxPriority is the least urgent priority of a PriorityQueue.
const MaxPriority = engine.MaxPriority

func (q *PriorityQueue) destination(priority int) destination {
	if priority < 0 || priority > MaxPriority {
		return destination{err: fmt.Errorf("%w: %d, want 0, the most urgent, to %d", ErrInvalidPriority, priority, MaxPriority)}
	}
	return destination{dir: q.child(engine.PriorityPartition(priority)), name: engine.ItemPrefix}
}
