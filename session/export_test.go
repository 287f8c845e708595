package session

import "time"

// WithSuspension sets the function that returns for how long the machine has been suspended.
func WithSuspension(suspended func() time.Duration) Option {
	return func(c *config) error {
		c.suspension = suspended
		return nil
	}
}
