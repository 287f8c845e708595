package zksync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Queue hands messages from producers to consumers, first in first out, each to
// one of them. See the package for the life of a message.
//
// [Queue.Put] and [Queue.PutAll] put messages in, once, even when connections and
// sessions are lost. Most programs receive from [Queue.Chan], which removes each
// received message. [Queue.Messages], and the loop of [Queue.All], deliver at least once,
// for work that must be done even if a process dies over it; [Queue.Take] takes one
// message at a time, exactly once.
//
// A value may be both a producer and a consumer, and shared by goroutines. An idle value
// makes no requests. Close it in the end, before its Manager.
//
// Messages are named as in ZooKeeper's queue recipe and Curator's
// SimpleDistributedQueue: children of path, named qn- and a number. WithLayout gives
// them the names of kazoo's Queue. Children with names that begin with zksync- are
// for claims and markers, and sort after the messages (the documentation of the package
// lists them); other children are ignored. Give queues of different kinds different paths:
// at one path, all of them deliver the messages of Retry. When no number is left, after two thousand
// million messages, Put waits until the queue is empty, and creates its directory again.
//
// Other clients must let the server number their messages, as the recipe does. A message
// that a client creates with a number of its own is delivered only if the number is greater
// than the numbers of all messages that consumers have claimed before. To restore a queue
// from a copy, put the messages again, or create them in a new directory before a consumer
// starts.
type Queue struct{ queue }

// A queue has the parts that Queue, PriorityQueue and DelayQueue share.
type queue struct {
	primitive
	kind engine.Kind

	// Two committers: a Take does not wait for the request of a Put, which may wait for room.
	puts     *commit.Committer
	removals *commit.Committer // of Takes
	consumer *engine.Consumer

	// For MoveTo into a queue with a limit: the gate, and a channel that is full while one of them uses it.
	moves     commit.Gate
	movesTurn chan struct{}

	mu        sync.Mutex
	mode      string // Chan or Messages; empty before the first call
	channel   any    // that the method has returned
	ended     error  // why the channel was closed
	consuming sync.WaitGroup

	open          context.Context // ends with ErrQueueClosed when Close begins
	end           context.CancelCauseFunc
	closeReturned chan struct{} // closed when Close has returned
}

// closePatience is how long Close waits for servers that cannot be reached.
const closePatience = 5 * time.Second

// NewQueue returns a Queue at path. The first Put creates the directory. NewQueue
// does no I/O: the first call reports a nil Manager, an invalid path or an invalid option.
func NewQueue(m *session.Manager, path string, opts ...QueueOption) *Queue {
	q := &Queue{}
	initQueue(&q.queue, "Queue", m, path, engine.InOrder, opts)
	if q.cfg.capacity > 0 {
		q.puts.Gate = q.newCapacity(false)
		q.moves, q.movesTurn = q.newCapacity(true), make(chan struct{}, 1)
	}
	return q
}

// initQueue makes the parts of a queue.
func initQueue[O Option](q *queue, name string, m *session.Manager, path string, k engine.Kind, opts []O) {
	q.primitive = newPrimitive(name, m, path, opts)
	q.kind = q.cfg.layout.queue(k)
	q.open, q.end = context.WithCancelCause(context.Background())
	q.closeReturned = make(chan struct{})
	// Both committers have their markers in one directory, so one of them deletes the
	// markers of processes that died.
	swept := new(atomic.Bool)
	q.puts = commit.New(m, q.child(engine.MarkersName), swept)
	q.puts.NumberOf = q.numberOf
	q.removals = commit.New(m, q.child(engine.MarkersName), swept)
	q.puts.MakeDir = q.makeDir
	q.consumer = engine.NewConsumer(engine.Config{Manager: m, Path: path, Kind: q.kind, Prefetch: q.cfg.prefetch, Removals: q.removals, MakeDir: q.makeDir})
}

// newCapacity returns the gate of a queue with a limit; see commit.Capacity.Unmarked.
func (q *queue) newCapacity(unmarked bool) commit.Gate {
	return &commit.Capacity{Max: q.cfg.capacity, Dir: q.path, Path: q.child(engine.LimitName), NumberOf: q.numberOf, MakeDir: q.makeDir, OnCount: q.consumer.ObserveLength, Unmarked: unmarked}
}

// numberOf returns the sequence number in the name of a message.
func (q *queue) numberOf(name string) (seq int32, ok bool) {
	it, ok := q.kind.Parse(name)
	return it.Seq, ok
}

// child returns the path of a znode in the queue's directory, or beside the directory
// in a layout in which every child of the directory is a message.
func (q *queue) child(name string) string { return q.kind.Child(q.path, name) }

// makeDir creates a directory of the queue, and the directories above it.
func (q *queue) makeDir(ctx context.Context, s *session.Session, path string) error {
	switch {
	case path == q.path:
		return q.cfg.layout.names().Directory(path).Create(ctx, s)
	case engine.IsPartition(znode.Base(path)):
		// No container: a server must not delete a directory of messages without a write to the order znode.
		// Otherwise a Take could remove a message of the next directory, in which the names are the same.
		return (&znode.Directory{Path: path, Lasting: true}).Create(ctx, s)
	}
	return s.MakeDir(ctx, path)
}

// checkUsable returns the reason why the value cannot be used, nil if it can.
func (q *queue) checkUsable() error {
	if err := q.invalid(); err != nil {
		return err
	}
	return context.Cause(q.open)
}

// Close ends the value, and leaves the queue on the servers. Messages that were not
// received or not settled go back to their positions, and the channel is closed. Puts
// that were not sent yet fail with ErrQueueClosed. Close waits for the answers to Puts
// that were sent, but for servers that cannot be reached at most five seconds: then these
// Puts fail with an error that is ErrOutcomeUnknown, too, and claimed messages are free
// when the session ends. Beside consumers much nearer to the servers, which claim messages all
// the time, Close waits for its turn, at most five seconds, too. Close returns when no goroutine of the value runs any more. There
// is one exception: if the answer to the creation of an idle consumer's znode was lost, a
// goroutine deletes the znode, and runs until the session ends at the latest. Close may be
// called more than once. Close the Queue before its Manager, so that it can delete
// its znodes.
func (q *queue) Close() error {
	if q.end == nil { // a zero value, which has nothing to close
		return q.opError("close", q.invalid())
	}
	// Under the mutex: Chan and Messages start no goroutine after this, for which the
	// Wait below would come too early.
	q.mu.Lock()
	first := q.open.Err() == nil
	q.end(ErrQueueClosed)
	q.mu.Unlock()
	if !first {
		<-q.closeReturned
		return nil
	}
	defer close(q.closeReturned)
	ctx, cancel := context.WithTimeoutCause(context.Background(), closePatience, ErrQueueClosed)
	defer cancel()
	// Puts and the consumer end at the same time, so that unreachable servers delay
	// Close only once. q.removals ends last: the consumer gives its messages back by it.
	var wg sync.WaitGroup
	wg.Go(func() { q.puts.Close(ctx, ErrQueueClosed) })
	q.consumer.Close(ctx)
	q.consuming.Wait()
	q.removals.Close(ctx, ErrQueueClosed)
	wg.Wait()
	return nil
}
