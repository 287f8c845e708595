package zksync

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// Put appends a message, which may be empty. If the message is too large for the servers,
// Put fails with session.ErrTooLarge before anything is sent. The caller may use data
// again when Put has returned. Puts of many goroutines travel together; the Puts of one
// goroutine stay in order.
//
// When Put returns nil the message is in the queue, once, even if connections and
// sessions were lost meanwhile. An error that is ErrOutcomeUnknown says that the message
// may be in the queue or still get there: ctx ended while the Put was under way, or
// another client removed the marker. With any other error the message is not in the queue
// and never will be.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.put(ctx, q.path, q.kind.Prefix, data)
}

// PutAll appends messages in order, many in one request. It is not atomic: if it fails,
// its error wraps a *PutAllError with the number of messages, from the first on, that are
// in the queue. The other messages are not in the queue, unless the error is
// ErrOutcomeUnknown: then more of them may be. Otherwise PutAll behaves like Put.
func (q *Queue) PutAll(ctx context.Context, messages ...[]byte) error {
	return q.putAll(ctx, q.path, q.kind.Prefix, messages)
}

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

// put puts one message into dir. name is the prefix of the message's name.
func (q *queue) put(ctx context.Context, dir, name string, data []byte) error {
	err := q.checkUsable()
	var t commit.Tx
	if err == nil {
		t, err = q.puts.NewCreate(dir, name, data)
	}
	if err = ready(ctx, err); err == nil {
		e := q.puts.StartOne(nil, t)
		defer q.puts.WithdrawAfter(q.cfg.maxWait, ErrMaxWait, e)()
		err = e.Wait(ctx)
	}
	return q.opError("put", err)
}

// putAll puts messages into dir, in order, as one chain of entries.
func (q *queue) putAll(ctx context.Context, dir, name string, messages [][]byte) error {
	refused := func(put int, err error) error {
		return q.opError("putAll", &PutAllError{Put: put, All: len(messages), Err: err})
	}
	if err := q.checkUsable(); err != nil {
		return refused(0, err)
	}
	// Check all messages before the first one is sent: a message that is too large would
	// end the PutAll halfway.
	txs := make([]commit.Tx, len(messages))
	for i, data := range messages {
		var err error
		if txs[i], err = q.puts.NewCreate(dir, name, data); err != nil {
			return refused(0, fmt.Errorf("message %d: %w", i+1, err))
		}
	}
	if ctx.Err() != nil {
		return refused(0, session.Cancelled(ctx))
	}
	// The chain breaks at the first message that fails, so that the messages in the queue
	// are always the first ones.
	entries := q.puts.Start(nil, &commit.Chain{}, txs...)
	defer q.puts.WithdrawAfter(q.cfg.maxWait, ErrMaxWait, entries...)()
	errs := q.puts.WaitAll(ctx, entries)
	n := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if n < 0 {
		return nil
	}
	return refused(n, errs[n])
}

func (q *queue) opError(op string, err error) error {
	if e, ok := err.(*Error); ok && e.Op == op && e.Path == q.path {
		return err
	}
	return opError(op, q.path, err)
}
