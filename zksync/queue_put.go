package zksync

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// Put appends a message. nil and empty messages are messages, too. Put of a message
// that is too large for the servers fails with session.ErrTooLarge, and the limit,
// before anything is sent. The caller may use data again when Put has returned.
//
// Puts of many goroutines travel together, one request at a time; the Puts of one
// goroutine stay in order. When Put returns nil the message is in the queue, once,
// even if connections and sessions were lost meanwhile. An error that is
// ErrOutcomeUnknown says that the message may be in the queue or still get there: ctx
// ended while the Put was under way, or another client removed the marker. With any
// other error the message is not in the queue and never will be. A message that was
// not sent when ctx ends is withdrawn.
func (q *Queue) Put(ctx context.Context, data []byte) error {
	return q.put(ctx, q.path, q.kind.prefix, data)
}

// PutAll appends messages in order, many in one request. If it fails, the PutAllError
// has the number of messages, from the first on, that are in the queue. The other
// messages are not in the queue, unless the error is ErrOutcomeUnknown: then more of
// them may be. Otherwise PutAll behaves like Put. PutAll as a whole is not atomic: a
// consumer may see the first before the last is there.
func (q *Queue) PutAll(ctx context.Context, messages ...[]byte) error {
	return q.putAll(ctx, q.path, q.kind.prefix, messages)
}

// A PutAllError is wrapped in the errors of PutAll. It says how many of the
// messages are in the queue for certain, from the first on.
type PutAllError struct {
	Put int   // how many are in the queue
	All int   // how many were given
	Err error // why not the next one
}

// Error begins with the numbers.
func (e *PutAllError) Error() string {
	return fmt.Sprintf("%d of %d were put: %v", e.Put, e.All, e.Err)
}

// Unwrap returns why the rest was not put.
func (e *PutAllError) Unwrap() error { return e.Err }

// put puts one message into dir. name is the prefix of the message's name.
func (q *queue) put(ctx context.Context, dir, name string, data []byte) error {
	t, err := q.putTx(dir, name, data)
	if err == nil && ctx.Err() != nil {
		err = session.Cancelled(ctx)
	}
	if err == nil {
		e := q.puts.StartOne(nil, t)
		defer q.withdrawAfterMaxWait(ctx, e)()
		err = e.Wait(ctx)
	}
	return q.opError("put", err)
}

// withdrawAfterMaxWait withdraws the entries that are not sent within WithMaxWait, unless stop is
// called before.
func (q *queue) withdrawAfterMaxWait(ctx context.Context, entries ...*commit.Entry) (stop func()) {
	if q.cfg.maxWait == 0 {
		return func() {}
	}
	// Without the cancellation of ctx: the caller waits under ctx itself, and withdrawal
	// here is for the time limit alone.
	bounded, cancel := q.cfg.bound(context.WithoutCancel(ctx))
	undo := context.AfterFunc(bounded, func() { q.puts.Withdraw(q.puts.Cancelled(bounded), entries...) })
	return func() {
		undo()
		cancel()
	}
}

// putAll puts messages into dir, in order, as one chain of entries.
func (q *queue) putAll(ctx context.Context, dir, name string, messages [][]byte) error {
	// Check all messages before the first one is sent: a message that is too large would
	// end the PutAll halfway.
	txs := make([]commit.Tx, len(messages))
	for i, data := range messages {
		var err error
		if txs[i], err = q.putTx(dir, name, data); err != nil {
			return q.opError("putAll", &PutAllError{All: len(messages), Err: fmt.Errorf("message %d: %w", i+1, err)})
		}
	}
	if err := q.checkUsable(); err != nil {
		return q.opError("putAll", err)
	}
	if ctx.Err() != nil {
		return q.opError("putAll", &PutAllError{All: len(messages), Err: session.Cancelled(ctx)})
	}
	// The chain breaks at the first message that fails, so that the messages in the queue
	// are always the first ones.
	entries := q.puts.Start(nil, &commit.Chain{}, txs...)
	defer q.withdrawAfterMaxWait(ctx, entries...)()
	errs := q.puts.WaitAll(ctx, entries)
	n := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if n < 0 {
		return nil
	}
	return q.opError("putAll", &PutAllError{Put: n, All: len(messages), Err: errs[n]})
}

// largeMessage is the size from which on putTx checks whether a message fits into a
// request. No limit is below 1,024 bytes.
const largeMessage = 512

// putTx builds the transaction of a Put.
func (q *queue) putTx(dir, name string, data []byte) (commit.Tx, error) {
	if err := q.checkUsable(); err != nil {
		return commit.Tx{}, err
	}
	// A cancelled entry may be sent again together with other entries of its request,
	// so it needs a copy of data.
	create := &zk.CreateRequest{Path: znode.Join(dir, name), Data: bytes.Clone(data), Flags: zk.FlagSequence}
	t := commit.Tx{Ops: []any{create}, Size: len(create.Path) + len(data) + 100, Dir: dir}
	if len(data) < largeMessage {
		return t, nil
	}
	// A request also writes the marker, whose name is as long as znode.GUIDForm.
	size, err := q.m.MultiSize(&zk.SetDataRequest{Path: znode.Join(q.child(markersName), znode.GUIDForm)}, create)
	if err != nil {
		return commit.Tx{}, err
	}
	if limit := q.m.MaxRequest(); size > limit {
		return commit.Tx{}, fmt.Errorf("%w: a message of %d bytes, where %d are the most (jute.maxbuffer of the servers; see session.WithMaxRequest)",
			session.ErrTooLarge, len(data), limit-(size-len(data)))
	}
	return t, nil
}

func (q *queue) opError(op string, err error) error {
	if e, ok := err.(*Error); ok && e.Op == op && e.Path == q.path {
		return err
	}
	return opError(op, q.path, err)
}
