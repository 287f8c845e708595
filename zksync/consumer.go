package zksync

// A consumer is the side of a queue that takes messages out of it.
type consumer struct {
	q *queue
}

// close gives back what was not received, and returns when nothing of the
// consumer runs any more. It may still use q.removals.
func (c *consumer) close() {}
