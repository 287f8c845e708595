package session

import "time"

// A clock returns the time that the machine has been suspended since some fixed moment.
// Go's monotonic time stands still during a suspension. The time of the servers does not.
type clock func() time.Duration

// wallDrift returns a clock for systems that do not report suspensions.
func wallDrift() clock {
	start := time.Now()
	return func() time.Duration {
		now := time.Now()
		// Round(0) removes the monotonic time. A wall clock that is set forward counts as
		// suspension as well, which is the cautious choice.
		return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
	}
}
