package session

import "time"

// A clock returns the time that the machine has been suspended since some fixed moment.
// Go's monotonic time stands still during a suspension. The time of the servers does not.
type clock func() time.Duration

// wallDrift returns a clock for systems that do not report suspensions. If wall time runs
// ahead of monotonic time, the difference counts as suspension. A wall clock that is set
// forward therefore counts as suspension as well.
func wallDrift() clock {
	start := time.Now()
	return func() time.Duration {
		now := time.Now()
		return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
	}
}
