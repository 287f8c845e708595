package session

import "time"

// A clock tells for how long the machine was suspended since some fixed moment.
// Go's monotonic time stands still during a suspension, while the servers' time
// does not.
type clock func() time.Duration

// wallDrift is a clock for systems that cannot tell: wall time that runs ahead
// of monotonic time counts as suspension, and so does a wall clock that is set
// forward.
func wallDrift() clock {
	start := time.Now()
	return func() time.Duration {
		now := time.Now()
		return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
	}
}
