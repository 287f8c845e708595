package zksync

// Chan returns the channel that delivers messages, first in first out, and begins to
// consume at its first call; later calls return the same. The channel has no buffer.
// A received message belongs to the receiver, and is then removed from the queue:
//
//   - A message that was not received is not lost: it goes to another consumer, or
//     to this one later, in its old position.
//   - If the process dies while it works on a received message, the message is lost.
//     Use Messages for work that must not be lost.
//   - The removal follows at once, but behind the receipt. If the process dies in
//     between, or its session is lost, other consumers get such messages again: 128
//     at most. This value never delivers a message twice, even over lost connections
//     and sessions.
//
// The channel is closed by Close, by the end of the Manager, and when no messages can
// be received at all, for example because the path is invalid or a permission is
// missing; Err has the reason. Lost connections and sessions only delay messages.
// Call Close when you stop receiving: otherwise a number of messages (see
// WithPrefetch) stay claimed by this value.
//
// A value delivers by Chan or by Messages, not by both: a call of the other method
// panics. Take may be used beside the channel. It then gets a message that was not
// claimed for the channel yet, which is later than the unreceived messages of the
// channel.
func (q *queue) Chan() <-chan []byte {
	q.consumer.startDelivery("Chan")
	return q.consumer.bytes
}

// Messages returns the channel that delivers messages which are removed at Ack, and
// begins to consume at its first call; later calls return the same channel. A message
// that was not acknowledged is delivered again when its consumer dies, and then comes
// in its old position, ahead of later messages. So a message is delivered at least once,
// and the work on it should tolerate a repetition. Work on a message may take any
// time while the session lasts. The channel is closed like the channel of Chan.
func (q *queue) Messages() <-chan *Message {
	q.consumer.startDelivery("Messages")
	return q.consumer.messages
}

// Err returns why the channel of Chan or Messages was closed: ErrQueueClosed, ErrClosed
// when the Manager was closed, or the error that keeps the value from consuming. Before
// that it returns nil, or why the last message was skipped (see Skipped).
func (q *queue) Err() error {
	q.consumer.mu.Lock()
	defer q.consumer.mu.Unlock()
	err := q.consumer.err
	if err == nil {
		err = q.consumer.skips.lastError()
	}
	return q.opError("consume", err)
}
