package zksync

import "fmt"

// maxPrefetch is the greatest number for WithPrefetch.
const maxPrefetch = 1024

// WithPrefetch bounds how many messages the value of a queue claims before they
// are received, between 1 and 1,024. It claims fewer at first, and goes up to n only
// for a receiver that waits for messages; and where other consumers wait for them,
// too, no more than its share. What is claimed nobody else gets, so fewer are right
// where work on a message takes long. The default is 256 for Chan and 16 for
// Messages; Take claims nothing.
func WithPrefetch(n int) Option {
	return func(c *config) error {
		if n < 1 || n > maxPrefetch {
			return fmt.Errorf("%w: WithPrefetch: %d, want 1 to %d", ErrInvalidOption, n, maxPrefetch)
		}
		c.given = append(c.given, "WithPrefetch")
		c.prefetch = n
		return nil
	}
}
