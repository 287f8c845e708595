package zksync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Queue hands messages from producers to consumers, first in first out, each to
// one of them.
//
//	             Put                     received                 removed
//	(producer) ------> waiting --> claimed ------> being worked on -------> gone
//	                      ^           |                  |
//	                      +-----------+------------------+
//	                        consumer closed, died, or gave it back
//
// [Queue.Put] and [Queue.PutAll] put messages in, once, even when connections and
// sessions are lost. Most programs receive from [Queue.Chan], which removes each
// received message. [Queue.Messages] delivers at least once, for work that must be
// done even if a process dies over it; [Queue.Take] takes one message at a time,
// exactly once.
//
// A value may be both a producer and a consumer, and shared by goroutines. It has
// goroutines only while it is at work, and an idle value makes no requests. Close it
// in the end, before its Manager.
//
// Messages are named as in ZooKeeper's queue recipe and Curator's
// SimpleDistributedQueue: children of path, named qn- and a number. WithLayout gives
// them the names of kazoo's Queue. Children with names that begin with zksync- are
// for claims and markers, and sort after the messages; other children are ignored.
// Each request of a producer raises the version of the value's own marker znode by
// one, so that a lost answer can be looked up. Markers of processes that died are
// deleted after a day. When two thousand million messages have gone through, and no
// number is left, Put waits until the queue is empty, and creates its directory
// again.
type Queue struct{ queue }

// A queue has the parts that Queue, PriorityQueue and DelayQueue share.
type queue struct {
	m    *session.Manager
	path string
	kind queueKind
	cfg  config
	bad  error // the error of the path or the options

	// Two committers: an Ack need not wait for the request of a Put.
	puts     *commit.Committer
	removals *commit.Committer
	consumer consumer

	closing       sync.Once
	closed        chan struct{} // closed when Close begins
	closeReturned chan struct{} // closed when it has returned
}

// closePatience is how long Close waits for servers that cannot be reached.
const closePatience = 5 * time.Second

// NewQueue returns a Queue at path. The first Put creates the directory. NewQueue
// does no I/O: the first call reports an invalid path or option. It has the options
// WithCapacity, WithLayout, WithMaxWait and WithPrefetch.
func NewQueue(m *session.Manager, path string, opts ...QueueOption) *Queue {
	q := &Queue{}
	q.cfg, q.bad = newConfig("Queue", opts)
	q.init(m, path, inOrder)
	if n := q.cfg.capacity; n > 0 {
		q.puts.Gate = &capacity{n: n, path: q.child(limitName), dir: path, parse: q.kind.parse, makeDir: q.makeDir, onCount: q.observeLength}
	}
	return q
}

// init makes the parts of a queue whose options are applied.
func (q *queue) init(m *session.Manager, path string, k queueKind) {
	q.m, q.path = m, path
	if q.bad == nil {
		q.bad = session.CheckPath(path)
	}
	q.kind = q.cfg.layout.queue(k)
	q.closed, q.closeReturned = make(chan struct{}), make(chan struct{})
	// Both committers have their markers in one directory, so one of them deletes the
	// markers of processes that died.
	swept := new(atomic.Bool)
	q.puts = commit.New(m, q.child(markersName), swept)
	q.puts.Recreate = q.freeNumber
	q.removals = commit.New(m, q.child(markersName), swept)
	q.puts.MakeDir, q.removals.MakeDir = q.makeDir, q.makeDir
	q.consumer.init(q)
}

// child returns the path of a znode in the queue's directory, or beside the directory
// in a layout in which every child of the directory is a message.
func (q *queue) child(name string) string {
	if q.kind.claimsBeside {
		return q.path + "-" + name
	}
	return znode.Join(q.path, name)
}

// makeDir creates a directory of the queue, and the directories above it.
func (q *queue) makeDir(ctx context.Context, s *session.Session, path string) error {
	if path != q.path {
		return s.MakeDir(ctx, path)
	}
	return q.cfg.layout.directory(path).Create(ctx, s)
}

// checkUsable returns the reason why the value cannot be used, nil if it can.
func (q *queue) checkUsable() error {
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

// Close ends the value, and leaves the queue on the servers. Messages that were not
// received from its channel, and delivered Messages that were not settled, go back to
// their positions, and the channel is closed. Puts that were not sent yet fail with
// ErrQueueClosed. Close waits for the answers to Puts that were sent, for five
// seconds at most if the servers cannot be reached, and then these Puts fail with an
// error that is ErrOutcomeUnknown, too. Messages that could not be given back by then
// are free as soon as the servers can be reached, or the session has ended. Close
// returns when no goroutine of the value runs any more, and may be called more than
// once. Close the Queue before its Manager, so that it can delete its znodes.
func (q *queue) Close() error {
	// Later calls of Close wait for the first one, but not in the Once: a goroutine that
	// is blocked in a Once stops the clock of a synctest bubble.
	first := false
	q.closing.Do(func() {
		first = true
		close(q.closed)
	})
	if first {
		defer close(q.closeReturned)
		ctx, cancel := context.WithTimeoutCause(context.Background(), closePatience, ErrQueueClosed)
		defer cancel()
		// Puts and the consumer end at the same time, so that unreachable servers delay
		// Close only once. q.removals ends last: the consumer gives its messages back by it.
		var wg sync.WaitGroup
		wg.Go(func() { q.puts.Close(ctx, ErrQueueClosed) })
		q.consumer.stopConsuming(ctx)
		q.removals.Close(ctx, ErrQueueClosed)
		wg.Wait()
		return nil
	}
	<-q.closeReturned
	return nil
}
