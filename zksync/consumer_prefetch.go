package zksync

import "fmt"

const (
	// maxPrefetch is the greatest number for WithPrefetch.
	maxPrefetch     = 1024
	defaultPrefetch = 128
)

// WithPrefetch limits how many messages the value of a queue has claimed and not
// settled: messages that wait for the receiver, and messages that were received and
// were neither acknowledged nor given back. The default is 128.
//
// n messages that were received and not settled are the last ones: the consumer gets
// no further message until it settles one. So at most n goroutines of
//
//	for m := range q.Messages() {
//		go work(m)
//	}
//
// are at work on messages of one session at any time. After the loss of a session, its
// messages do not count any more, since other consumers may have them. A program that
// keeps n messages without Ack and Nack receives nothing more. A message of Chan is
// settled when it has been removed, which follows the receipt at once. Take claims
// nothing.
//
// A value claims fewer than n at first, and up to n only for a receiver that waits for
// messages. Where other consumers wait for messages, too, it claims no more than its
// share. No other consumer gets a claimed message, so fewer are right where the work on
// a message takes long.
//
// n is between 1 and 1,024. Each claim is an ephemeral znode, whose path is part of the
// transaction that ends the session, and a transaction above the jute.maxbuffer of the
// servers (1 MB by default) stops the ensemble for good. The values of one Manager share
// a session. So all of them together claim messages only up to 256 kB of paths, which
// are about 2,000 claims at a path of 40 bytes; beyond these, a value has one claim at a
// time.
func WithPrefetch(n int) PrefetchOption {
	return option(func(c *config) error {
		if n < 1 || n > maxPrefetch {
			return fmt.Errorf("%w: WithPrefetch: %d, want 1 to %d", ErrInvalidOption, n, maxPrefetch)
		}
		c.prefetch = n
		return nil
	})
}
