package zksync

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-zksync/toolkit/session"
	engine "github.com/go-zksync/toolkit/zksync/internal/queue"
)

// Chan returns the channel that delivers messages, first in first out, and begins to
// consume at its first call; later calls return the same channel, which has no buffer.
// A message is removed from the queue after it was received:
//
//   - A message that was not received is not lost. It is delivered later, to this
//     consumer or to another, in its old position.
//   - If the process dies while it works on a received message, the message is lost.
//     Use Messages for work that must not be lost.
//   - If the process dies, its session is lost, or its Manager is closed, right after a
//     receipt, other consumers get up to 128 received messages again. This value delivers
//     no message twice: it remembers the last 4,096 messages that it could not remove.
//     Close the queue before its Manager.
//   - Another consumer may get a received message again if the servers have refused its
//     removal, for example because of a quota or by an internal error twice.
//   - A machine that was suspended until its session was lost delivers at most the one
//     message that its channel offered before, although other consumers may have it.
//
// The channel is closed by Close, by the end of the Manager, and when no messages can
// be received at all, because the path is invalid or a permission is missing. Err has the
// reason. Lost connections, lost sessions and internal errors of servers only delay messages;
// the log tells of errors that last.
// Call Close when you stop receiving: otherwise messages stay claimed by this value.
//
// A value delivers by Chan or by Messages: a call of the other method panics. Take may be
// used beside the channel, and gets a message that was not claimed for the channel.
func (q *queue) Chan() <-chan []byte {
	return startDelivery(q, "Chan", func(d *engine.Delivery) []byte { return d.Data })
}

// Messages returns the channel that delivers messages which are removed at Ack, and
// begins to consume at its first call; later calls return the same channel. The channel
// has no buffer. A message that was not acknowledged is delivered again when its consumer
// dies or loses its session, and then comes in its old position, ahead of later messages,
// unless the names of all such messages exceed half of session.WithMaxRequest.
// So a message is delivered at least once, and the work on it should tolerate a
// repetition. Message.Attempts tells how many times it was delivered. Work on a message
// may take any time while the session lasts. The channel is closed like the channel of Chan.
//
// The receiver settles each message by Ack, Nack, Retry or MoveTo. No further message
// comes while as many messages as WithPrefetch allows, 128 by default, are not settled:
// a loop that starts a goroutine for each message has 128 of them at work, and no other
// consumer gets their messages meanwhile. A wait for that is logged at the level Info.
func (q *queue) Messages() <-chan *Message {
	return startDelivery(q, "Messages", q.newMessage)
}

// Err returns why the channel of Chan or Messages was closed: ErrQueueClosed, ErrClosed
// when the Manager was closed, or the error that keeps the value from consuming. Before
// that it returns nil, or why the last message was skipped (see Skipped).
func (q *queue) Err() error {
	q.mu.Lock()
	err := q.ended
	q.mu.Unlock()
	if err == nil {
		err = q.invalid()
	}
	if err == nil {
		_, err = q.consumer.Skipped()
	}
	return q.opError("consume", err)
}

// startDelivery returns the channel of a method of q, which it makes at its first call, and
// then starts to consume. mode is the name of the method.
func startDelivery[T any](q *queue, mode string, value func(*engine.Delivery) T) <-chan T {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mode != "" && q.mode != mode {
		panic(fmt.Sprintf("zksync: %s of the queue %s, which is consumed by %s: a value has one way of consuming", mode, q.path, q.mode))
	}
	if q.mode == mode {
		return q.channel.(chan T)
	}
	c := make(chan T)
	q.mode, q.channel = mode, c
	if q.ended = q.checkUsable(); q.ended != nil {
		close(c)
		return c
	}
	q.consuming.Go(func() {
		err := q.consumer.Deliver(mode == "Chan", func(ctx context.Context, d *engine.Delivery) bool {
			select {
			case c <- value(d):
				return true
			case <-d.Lost(): // ctx ends a little later
			case <-ctx.Done():
			}
			return false
		})
		// A receiver that sees the closed channel must find the reason in Err.
		q.mu.Lock()
		defer q.mu.Unlock()
		q.ended = err
		close(c)
	})
	return c
}

// All returns a loop over the messages of Messages:
//
//	for msg, err := range q.All(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// The loop ends with an error and no message when ctx ends (the error says if no message
// came because too many are not settled), and when the channel of
// Messages is closed: then the error is the one of Err. The end of a loop leaves the value
// open, and another loop may begin. The receiver must settle each message; see Messages.
func (q *queue) All(ctx context.Context) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		if err := q.invalid(); err != nil {
			yield(nil, q.opError("consume", err))
			return
		}
		messages := q.Messages()
		for {
			if ctx.Err() != nil {
				yield(nil, q.opError("consume", session.CancelledWaiting(ctx, q.consumer.Unsettled())))
				return
			}
			select {
			case msg, ok := <-messages:
				if !ok {
					yield(nil, q.Err())
					return
				}
				if !yield(msg, nil) {
					return
				}
			case <-ctx.Done():
			}
		}
	}
}

// Take waits for the first message that no other consumer has claimed, removes it
// from the queue, and returns it: exactly once, even over lost connections and
// sessions, and beside clients in other languages. It costs one transaction and
// claims nothing in advance.
//
// When ctx ends before the removal of a message was sent, Take has taken nothing, and the
// error says whether the queue was empty or consumers had claimed all its messages. When
// ctx ends while the removal is under way, Take returns the data at once, with an error
// that is ErrOutcomeUnknown and wraps the reason of ctx: handle the data as data that may
// be delivered twice, since data that is dropped may be lost. Take also returns the data
// with ErrOutcomeUnknown if the answer to the removal was lost, the marker does not tell
// the outcome, and the message is gone: because another client has removed the marker, a
// Put has deleted it with the directory whose numbers were spent, or servers answer with
// internal errors. If they do so five times in a row, Take does not know whether the
// message is gone, and returns the data with ErrOutcomeUnknown, too. A message that is
// still there comes again.
//
// Of Takes that are under way at the same time, the one nearest to the servers gets the
// first message: while others take each message at once, a Take farther away may wait.
//
// Take fails with ErrQueueClosed when the value is closed, and with ErrClosed when the
// Manager is. Close waits for the answer to a removal, for five seconds at most.
func (q *queue) Take(ctx context.Context) ([]byte, error) {
	data, _, err := q.take(ctx, true)
	return data, q.opError("take", err)
}

// TryTake is Take without waiting: it reports false if there was no message to take at
// the time of the call. It commits a transaction without effect to find out (see
// session.Session.SyncQuorum): poll with Take and a ctx instead.
func (q *queue) TryTake(ctx context.Context) ([]byte, bool, error) {
	data, ok, err := q.take(ctx, false)
	return data, ok, q.opError("tryTake", err)
}

func (q *queue) take(ctx context.Context, patient bool) ([]byte, bool, error) {
	if err := q.checkUsable(); err != nil {
		return nil, false, err
	}
	return q.consumer.Take(ctx, patient)
}

// Peek returns the message that would be delivered next, and false if there was none at
// the time of the call: it commits a transaction without effect to find out, as TryTake
// does. The message stays in the queue, and may be gone when Peek returns. Peek lists the
// queue, as Len does. It passes over messages that cannot be read, and fails with the
// reason if there are no other messages.
func (q *queue) Peek(ctx context.Context) (data []byte, ok bool, err error) {
	if err = q.checkUsable(); err == nil {
		data, ok, err = q.consumer.Peek(ctx)
	}
	return data, ok, q.opError("peek", err)
}

// Skipped returns how many messages this value has skipped, because they could not be
// read (their ACL does not allow it, or they exceed session.WithMaxAnswer) or not be removed (they have children: Chan and
// Messages have delivered them, and Take does not return them). A skipped message stays
// in the queue, and the other messages are delivered. Each claim of a later message writes 7 to 12
// bytes for each run of skipped messages before it, up to a quarter of session.WithMaxRequest; beside more
// of them the consumers list the queue each second. Consumers that skip a message all look for the next
// one, and not one of them alone. So move or delete such messages. The value tries the message again
// under a new session, and counts it again if that fails. Err returns the reason for the
// last skip, and a log line, one per minute at most, names the message. A message whose
// answer is too slow (session.ErrAnswerTooSlow) is skipped for a minute.
func (q *queue) Skipped() int {
	if q.invalid() != nil {
		return 0
	}
	n, _ := q.consumer.Skipped()
	return n
}

// Len returns the number of messages in the queue: messages that wait, messages that
// are not due yet, and messages that consumers have and did not acknowledge yet. It
// lists the queue, which takes about 18 bytes a message. The number may be out of
// date when Len returns.
func (q *queue) Len(ctx context.Context) (n int, err error) {
	if err = q.checkUsable(); err == nil {
		n, err = q.consumer.Len(ctx)
	}
	return n, q.opError("len", err)
}
