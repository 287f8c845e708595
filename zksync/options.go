package zksync

import (
	"fmt"
	"time"
)

// An Option changes a default of a constructor. Constructors return no error:
// an invalid option, or one that the primitive does not have, is reported by the
// first call, with an error that wraps ErrInvalidOption.
type Option func(*config) error

type config struct {
	maxWait time.Duration
	linger  time.Duration
}

func newConfig(opts []Option) (config, error) {
	var c config
	for i, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// WithMaxWait bounds how long an acquisition waits, in addition to its ctx.
// After d it fails with ErrMaxWait, which is also context.DeadlineExceeded. What
// was acquired is not bounded by it.
func WithMaxWait(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("%w: WithMaxWait: %v is not positive", ErrInvalidOption, d)
		}
		c.maxWait = d
		return nil
	}
}

// WithLinger lets a Mutex keep its znode for up to d after Unlock while nobody
// else is in line, so that locking again costs no request. The first contender
// ends it at once, but a TryLock elsewhere may return false against it. It pays
// where one process locks the same path over and over. The default is 0: off.
func WithLinger(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("%w: WithLinger: %v is negative", ErrInvalidOption, d)
		}
		c.linger = d
		return nil
	}
}
