package zksync

// Chan returns the channel that delivers messages, first in first out, and begins
// to consume at its first call; later calls return the same. The channel has no
// buffer. Whoever receives a message has it, and it is then removed from the queue:
//
//   - A message that was not received is not lost: it goes to another consumer, or
//     to this one later, in its old place.
//   - One that was received and is being worked on is lost if the process dies:
//     Messages is for work that must not be.
//   - The removal follows at once, but behind the receipt. If the process dies in
//     between, or its session is lost, other consumers get such messages again: 128
//     at most. This value does not deliver one again that it has delivered, whatever
//     becomes of connections and sessions.
//
// The channel is closed by Close, by the end of the Manager, and where messages
// cannot be had at all, as for an invalid path or for want of permission; Err says
// why. Lost connections and sessions only delay it. Whoever stops receiving should
// Close, since up to a number of messages (see WithPrefetch) wait for the receiver
// and for nobody else.
//
// A value has Chan or Messages, not both: asking for the other panics. Take may be
// used beside them, and then gets a message that was not claimed yet for the channel,
// so one that is later than some that were not received from it.
func (q *queue) Chan() <-chan []byte {
	q.consumer.start("Chan")
	return q.consumer.bytes
}

// Messages returns the channel that delivers messages which are removed at Ack,
// and begins to consume at its first call; later calls return the same. A message
// that was not acknowledged is delivered again when its consumer dies, and comes
// then in its old place, ahead of later ones: at least once, so that work on it
// should be able to bear that. There is no bound to how long a message may be worked
// on, while the session lasts. The channel is closed like that of Chan.
func (q *queue) Messages() <-chan *Message {
	q.consumer.start("Messages")
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
