package zksync

import (
	"context"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A Queue hands messages from producers to consumers, first in first out.
type Queue struct{ queue }

// A queue is what Queue, PriorityQueue and DelayQueue have in common.
type queue struct {
	m    *session.Manager
	path string
	kind kind
	cfg  config
	bad  error // what is wrong with the path or the options

	// Acknowledgements need not wait for Puts.
	puts     *committer
	removals *committer
	consumer consumer

	closing sync.Once
	closed  chan struct{} // closed when Close begins
	over    chan struct{} // closed when it has returned
}

// NewQueue returns a Queue at path, which it makes when it is first put to. It
// does no I/O: what is wrong with the path or an option is reported by the first
// call.
func NewQueue(m *session.Manager, path string, opts ...Option) *Queue {
	q := &Queue{}
	q.init(m, path, inOrder, opts, append([]string{"WithCapacity"}, consumerOptions...)...)
	if n := q.cfg.capacity; n > 0 {
		q.puts.gate = &capacity{n: n, path: q.child(limitName), dir: path}
	}
	return q
}

// consumerOptions are those that all queues have.
var consumerOptions = []string{"WithMaxWait", "WithPrefetch"}

func (q *queue) init(m *session.Manager, path string, k kind, opts []Option, has ...string) {
	q.m, q.path, q.kind = m, path, k
	if q.cfg, q.bad = newConfig(k.name, opts, has...); q.bad == nil {
		q.bad = session.CheckPath(path)
	}
	q.closed, q.over = make(chan struct{}), make(chan struct{})
	sweep := new(sync.Once)
	q.puts = newCommitter(m, q.child(markersName), sweep)
	q.puts.renew = q.renew
	q.removals = newCommitter(m, q.child(markersName), sweep)
	q.consumer.init(q)
}

// child is the path of a znode in the queue's directory.
func (q *queue) child(name string) string { return child(q.path, name) }

// usable says why the value cannot be used, if it cannot.
func (q *queue) usable() error {
	if q.bad != nil {
		return q.bad
	}
	select {
	case <-q.closed:
		return ErrQueueClosed
	default:
		return nil
	}
}

// Close ends the value, and leaves the queue on the servers. Puts that were not
// sent yet fail with ErrQueueClosed; for the answers to those that were it waits,
// for five seconds at most if the servers cannot be reached. It returns when
// nothing of the value runs any more, and may be called more than once. Close the
// Queue before its Manager, so that it can clean up behind itself.
func (q *queue) Close() error {
	q.closing.Do(func() {
		defer close(q.over)
		close(q.closed)
		q.consumer.close()
		ctx, cancel := context.WithTimeoutCause(context.Background(), closePatience, ErrQueueClosed)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { q.puts.close(ctx) })
		wg.Go(func() { q.removals.close(ctx) })
		wg.Wait()
	})
	<-q.over
	return nil
}
