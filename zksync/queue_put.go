package zksync

import (
	"cmp"
	"context"
	"fmt"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// Put appends a message, which may be empty. If the message is too large for the servers,
// Put fails with session.ErrTooLarge before anything is sent. About 2 kB of a request stay
// free, so that Retry and MoveTo can move each message. The caller may use data again when
// Put has returned. Puts of many goroutines travel together; the Puts of one goroutine
// stay in order.
//
// When Put returns nil the message is in the queue, once, even if connections and
// sessions were lost meanwhile. An error that is ErrOutcomeUnknown says that the message
// may be in the queue or still get there: ctx ended while the Put was under way, another
// client removed the marker (alone or with a directory whose numbers were spent), or
// servers answered the request, and the question for its outcome, with internal errors.
// With any other error the message is not in the queue and never will be.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.put(ctx, q.destination(), data)
}

// PutAll appends messages in order, many in one request. It is not atomic: if it fails,
// its error wraps a *PutAllError with the number of messages, from the first on, that are
// in the queue. The other messages are not in the queue, unless the error is
// ErrOutcomeUnknown: then more of them may be. Otherwise PutAll behaves like Put.
func (q *Queue) PutAll(ctx context.Context, messages ...[]byte) error {
	return q.putAll(ctx, q.destination(), messages)
}

func (q *Queue) destination() destination { return destination{dir: q.path, name: q.kind.Prefix} }

// A PutAllError is wrapped in the errors of PutAll.
type PutAllError struct {
	Put int   // number of messages, from the first on, that are in the queue for certain
	All int   // number of messages that were given
	Err error // the reason why the next message was not put
}

// Error begins with the numbers.
func (e *PutAllError) Error() string {
	return fmt.Sprintf("%d of %d were put: %v", e.Put, e.All, e.Err)
}

// Unwrap returns the reason why the next message was not put.
func (e *PutAllError) Unwrap() error { return e.Err }

// A destination is the directory of a message and the prefix of its name, or the reason
// why there is none.
type destination struct {
	dir, name string
	err       error
}

// put puts one message.
func (q *queue) put(ctx context.Context, to destination, data []byte) error {
	_, err := q.commit(ctx, to, data)
	return q.opError("put", err)
}

// putAll puts messages, in order.
func (q *queue) putAll(ctx context.Context, to destination, messages [][]byte) error {
	n, err := q.commit(ctx, to, messages...)
	if err == nil {
		return nil
	}
	return q.opError("putAll", &PutAllError{Put: n, All: len(messages), Err: err})
}

// commit puts messages, in order. If it fails, n messages, from the first on, are in the
// queue for certain.
func (q *queue) commit(ctx context.Context, to destination, messages ...[]byte) (n int, err error) {
	if err := cmp.Or(to.err, q.checkUsable()); err != nil {
		return 0, err
	}
	// Check all messages before the first one is sent: a message that is too large would
	// end the PutAll halfway.
	txs := make([]commit.Tx, len(messages))
	for i, data := range messages {
		if txs[i], err = q.puts.NewCreate(to.dir, to.name, data); err != nil {
			if len(messages) > 1 {
				err = fmt.Errorf("message %d: %w", i+1, err)
			}
			return 0, err
		}
	}
	if ctx.Err() != nil {
		return 0, session.Cancelled(ctx)
	}
	entries := q.puts.Start(txs...)
	defer q.puts.WithdrawAfter(q.cfg.maxWait, ErrMaxWait, entries...)()
	// Wait for all entries: when ctx ends, each Wait withdraws its message.
	for _, e := range entries {
		failed := e.Wait(ctx)
		if err == nil {
			err = failed
		}
		if err == nil {
			n++
		}
	}
	return n, err
}
